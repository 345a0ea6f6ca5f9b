import { existsSync, statSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { word } from '../../../core/quote.ts'
import { isRefusal } from '../../../core/refusal.ts'
import { codexTrust, TRUST_NEXT, UNTRUSTED } from '../../../machine/codex_trust.ts'
import { folderOf } from '../../../stores/open.ts'
import type { Context } from '../context.ts'
import { io } from '../../io.ts'

/** What one look of the doctor found. */
export interface DoctorLook {
  ok: boolean
  says: string
  next?: string
  damaged?: boolean
}

/**
 * Whether the hooks that are set up here would find leasehold. Where they do not, they pass in
 * silence, so that people without leasehold can work: then nothing is guarded.
 */
export async function checkHooks({ env }: Context): Promise<DoctorLook> {
  const { hooksIn, isOnPath, onceFor } = await import('../init/main.ts')
  const hooks = unlessInvalid(() => hooksIn(io().cwd(), env))
  if (!hooks) return { ok: true, says: 'this folder is no checkout' }
  if (hooks.length === 0) return { ok: true, says: 'none in this folder (leasehold init)' }
  const lost = hooks.filter(({ bin }) => {
    const PATH = [env['PATH'] ?? '', ...bin].join(':')
    return !isOnPath('leasehold', { PATH })
  })
  const names = (all: typeof hooks) => all.map(({ name }) => name).join(', ')
  if (lost.length === 0) {
    const codex = hooks.find(({ agent }) => agent === 'codex')
    const isIdle = codex && (await codexTrust(codex.root, env)) === 'untrusted'
    if (isIdle) return { ok: false, says: `${names(hooks)}, but ${UNTRUSTED}`, next: TRUST_NEXT }
    const once = onceFor(hooks.flatMap(({ agent }) => agent ?? []))
    return { ok: true, says: [names(hooks), ...once].join('; ') }
  }
  const says = `leasehold is not on the PATH: the hooks of ${names(lost)} do nothing`
  return {
    ok: false,
    says,
    next: 'npm i -g leasehold, or put the folder of bin/leasehold on PATH.',
  }
}

/** Undefined where that refuses with `invalid`. */
function unlessInvalid<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch (error) {
    if (isRefusal(error, 'invalid')) return undefined
    throw error
  }
}

/** What config.json names and this machine lacks: folders, programs, variables. */
export async function checkPrograms({ place, env }: Context): Promise<DoctorLook> {
  const { readConfig, readSaid } = await import('../../../daemon/main.ts')
  const { isOnPath } = await import('../init/main.ts')
  const config = unlessInvalid(() => readConfig(folderOf(place), env))
  if (!config) return { ok: true, says: 'not looked at: config.json is wrong' }
  const { projects, agents, alerts, memory } = config
  // What a preset passes through is there or not; what a person named is meant.
  const named = readSaid(folderOf(place), env).agents
  const lacks = new Set<string>()
  const program = (name: string, cwd: string, whose: string) => {
    const path = isAbsolute(name) ? name : join(cwd, name)
    const isThere = name.includes('/') ? existsSync(path) : isOnPath(name, env)
    if (!isThere) lacks.add(`${whose}: no program ${word(name)}`)
  }
  const variable = (name: string | null | undefined, whose: string) => {
    if (name && !env[name]) lacks.add(`${whose}: ${name} is not set`)
  }
  for (const [name, { path, agent }] of Object.entries(projects)) {
    const whose = `project ${word(name)}`
    const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory()
    if (!isFolder) lacks.add(`${whose}: no folder ${word(path)}`)
    const started = agents[agent]
    if (!started) lacks.add(`${whose}: no agent ${word(agent)}`)
    else program(started.command[0]!, path, whose)
    for (const each of Object.keys(named[agent]?.env ?? {})) {
      if (started?.env[each] === true) variable(each, whose)
    }
  }
  if (alerts.command) program(alerts.command[0]!, folderOf(place), 'alerts')
  variable(alerts.webhook?.secret_env, 'alerts')
  variable(memory.embeddings.api_key_env, 'memory')
  if (lacks.size === 0) return { ok: true, says: 'all that config.json names is here' }
  const next = 'Install it, or set it where the server is started; then leasehold down, and up.'
  return { ok: false, says: [...lacks].join('; '), next }
}
