import type { LandingRule } from '../schema/landing.ts'
import type { Task } from '../schema/task.ts'
import type { SettingRows } from '../queue/host_settings.ts'
import { planted } from '../planted.ts'
import { Refusal } from '../refusal.ts'
import type { View } from '../view.ts'

/** How tasks of a project are landed; undefined where its config.json says nothing of it. */
export const ruleFor = (view: View, project: string | null): LandingRule | undefined =>
  project === null ? undefined : view.get('landing_rule', project)

/** Whether a task becomes `done` only by a check that passed, or by being landed. */
export const mustProve = (view: View, { project }: Task) => ruleFor(view, project) !== undefined

type Field = 'onto' | 'auto' | 'checks'
const NONE = { onto: null, auto: false, checks: false }

/** `projects.web.land.onto` and the like. A project of which nothing is left has no rule. */
export const LANDING_ROWS: SettingRows = {
  get: (view, [, project = '', , field]) =>
    ({ ...NONE, ...ruleFor(view, project) })[field as Field],
  put(view, [, project = '', , field], value) {
    const said = { [field as Field]: value ?? NONE[field as Field] }
    const rule: LandingRule = { project, ...NONE, ...ruleFor(view, project), ...said }
    if (rule.onto === null && !rule.checks) view.remove('landing_rule', project)
    else view.put('landing_rule', rule)
  },
}

type Metadata = Record<string, unknown>

/** What a lander writes into the metadata of a task: by what it is proved, why it came back. */
const WRITTEN: readonly string[] = ['proof', 'returned']

/**
 * Metadata as somebody says it; what a lander wrote there stays. Refuses with `forbidden` to say
 * something else in its place, or without one: `done` is proved by nobody's word.
 */
export function keepProof(said: Metadata, before: Metadata = {}): Metadata {
  if (planted('R55 proof')) return said
  const kept = WRITTEN.filter((name) => before[name] !== undefined)
  const forged = WRITTEN.find((name) => name in said && !isSame(said[name], before[name]))
  if (forged !== undefined) throw forgery(forged)
  return { ...said, ...Object.fromEntries(kept.map((name) => [name, before[name]])) }
}

/** Whichever order its fields are in: who read it may write it back. */
const isSame = (a: unknown, b: unknown) => factsOf(a) === factsOf(b)
const factsOf = (value: unknown) =>
  JSON.stringify(Object(value) === value ? Object.entries(value as object).toSorted(byName) : value)
const byName = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1)

function forgery(name: string): Refusal {
  return new Refusal('forbidden', `metadata.${name} is written by the lander alone`, {
    next: 'Leave it out: what the lander wrote stays as it is.',
    details: { field: `metadata.${name}` },
  })
}
