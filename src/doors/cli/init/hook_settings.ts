import { isDeepStrictEqual } from 'node:util'
import type { AllowedTools, HookShape } from '../../../agents/record.ts'
import { isObject, JsonText } from './json_text.ts'
import { type InitPart, textPart } from './part.ts'

/** One event of an agent for which our hook is asked. */
export interface HookEntry {
  /** As the agent spells it. */
  event: string
  matcher?: string
  command: string
  timeout: number
}

interface HookSettings {
  path: string
  why: string
  shape: HookShape
  /** Fields that the file must have beside its hooks. */
  root: Record<string, unknown>
  events: HookEntry[]
  allow?: AllowedTools
}

const OURS = /\bleasehold hook [a-z]+ [a-z_-]+/i
const isOurs = (handler: unknown) =>
  isObject(handler) && typeof handler['command'] === 'string' && OURS.test(handler['command'])

/** Hooks merged into an agent's settings; those of others stay where they are, in their order. */
export function hookPart(settings: HookSettings): InitPart {
  const { path, why, shape, root, events, allow = NOTHING } = settings
  return textPart({
    path,
    why,
    put: (before) => {
      const json = new JsonText(before, path)
      for (const [key, value] of Object.entries(root)) {
        if (json.value[key] === undefined) json.set([key], value)
      }
      for (const name of Object.keys(json.object(['hooks']) ?? {})) {
        if (!events.some(({ event }) => event === name)) takeEvent(json, name)
      }
      for (const event of events) putEvent(json, event, shape)
      for (const rule of allow.rules) {
        const rules = rulesIn(json, allow)
        if (!rules) json.set(allow.at, [rule])
        else if (!rules.includes(rule)) json.append(allow.at, rule)
      }
      return json.toString()
    },
    take: (now) => {
      const json = new JsonText(now, path)
      for (const name of Object.keys(json.object(['hooks']) ?? {})) takeEvent(json, name)
      const { hooks } = json.value
      if (isObject(hooks) && Object.keys(hooks).length === 0) json.remove(['hooks'])
      takeRules(json, allow)
      const left = Object.entries(json.value)
      const isEmpty = left.every(([key, value]) => root[key] === value)
      return isEmpty ? undefined : json.toString()
    },
  })
}

const NOTHING: AllowedTools = { at: ['permissions', 'allow'], rules: [] }

function rulesIn(json: JsonText, { at }: AllowedTools): unknown[] | undefined {
  const list = json.object(at.slice(0, 1))?.[at[1]]
  if (list === undefined || Array.isArray(list)) return list
  throw json.misfit(at, 'a list')
}

/** Takes our rules out; a list, and an object around it, that held nothing else go too. */
function takeRules(json: JsonText, allow: AllowedTools): void {
  const rules = rulesIn(json, allow) ?? []
  const ours = rules.flatMap((rule, i) => (allow.rules.some((each) => each === rule) ? [i] : []))
  if (ours.length === 0) return
  const { at } = allow
  for (const i of ours.toReversed()) json.remove([...at, i])
  if (ours.length < rules.length) return
  json.remove(at)
  const [section] = at
  if (Object.keys(json.object([section]) ?? {}).length === 0) json.remove([section])
}

function putEvent(json: JsonText, wanted: HookEntry, shape: HookShape): void {
  const entry = entryOf(wanted, shape)
  const list = listOf(json, wanted.event)
  const ours = (list ?? []).flatMap((each, i) => (holdsOurs(each) ? [i] : []))
  if (ours.length === 1 && isDeepStrictEqual(list![ours[0]!], entry)) return
  const [only] = ours
  if (ours.length === 1 && isOnlyOurs(list![only!])) {
    json.set(['hooks', wanted.event, only!], entry)
    return
  }
  takeEvent(json, wanted.event)
  if (listOf(json, wanted.event)) json.append(['hooks', wanted.event], entry)
  else json.set(['hooks', wanted.event], [entry])
}

function entryOf({ matcher, command, timeout }: HookEntry, shape: HookShape): object {
  const filter = matcher === undefined ? {} : { matcher }
  if (shape === 'plain') return { command, timeout, ...filter }
  if (shape === 'typed') return { type: 'command', command, timeout }
  return { ...filter, hooks: [{ type: 'command', command, timeout }] }
}

function listOf(json: JsonText, event: string): unknown[] | undefined {
  const list = json.object(['hooks'])?.[event]
  if (list === undefined || Array.isArray(list)) return list as unknown[] | undefined
  throw json.misfit(['hooks', event], 'a list')
}

const handlersIn = (each: unknown) =>
  isObject(each) && Array.isArray(each['hooks']) ? (each['hooks'] as unknown[]) : [each]
const holdsOurs = (each: unknown) => handlersIn(each).some(isOurs)
const isOnlyOurs = (each: unknown) => holdsOurs(each) && handlersIn(each).every(isOurs)

/** Takes our commands out of one event; a group or a list that held nothing else goes too. */
function takeEvent(json: JsonText, event: string): void {
  const list = listOf(json, event) ?? []
  if (!list.some(holdsOurs)) return
  if (list.every(isOnlyOurs)) {
    json.remove(['hooks', event])
    return
  }
  list.forEach((_, fromStart) => {
    const i = list.length - 1 - fromStart
    const handlers = handlersIn(list[i])
    if (isOnlyOurs(list[i])) json.remove(['hooks', event, i])
    else {
      const mine = handlers.flatMap((handler, j) => (isOurs(handler) ? [j] : []))
      for (const j of mine.toReversed()) json.remove(['hooks', event, i, 'hooks', j])
    }
  })
}
