import { existsSync, statSync } from 'node:fs'
import type { Command } from 'commander'
import pc from 'picocolors'
import { Refusal } from '../../core/refusal.ts'
import { operationNamed } from '../../operations/registry.ts'
import type { ShownStatus } from '../../operations/search_status.ts'
import { checkStore } from '../../stores/care.ts'
import { folderOf, storeExists } from '../../stores/open.ts'
import { isTracked } from '../../stores/privacy.ts'
import { isStopped } from '../../stores/process.ts'
import { serverIn } from '../../stores/server_file.ts'
import type { Enter } from './commands.ts'
import type { Context } from './context.ts'
import { print } from './show.ts'

interface Finding {
  what: string
  ok: boolean
  says: string
  next?: string
}

type Looked = Omit<Finding, 'what'>
type Check = (context: Context) => Promise<Looked> | Looked

export function addDoctor(root: Command, enter: Enter): void {
  root
    .command('doctor')
    .description('Look whether everything is well here, and say what to do where it is not.')
    .action(async (_, self: Command) => {
      const context = enter(self.optsWithGlobals())
      const findings: Finding[] = []
      for (const [what, check] of CHECKS) findings.push(await guarded(what, check, context))
      const ok = findings.every((finding) => finding.ok)
      print(context.json ? JSON.stringify({ ok, findings }) : findings.map(line).join('\n'))
      if (!ok) process.exitCode = 1
    })
}

/** A check that itself fails is a finding too: the doctor always finishes. */
async function guarded(what: string, check: Check, context: Context): Promise<Finding> {
  try {
    return { what, ...(await check(context)) }
  } catch (error) {
    const next = error instanceof Refusal ? error.next : ''
    return { what, ok: false, says: (error as Error).message, next }
  }
}

function line({ what, ok, says, next }: Finding): string {
  const mark = ok ? pc.green('ok  ') : pc.red('FAIL')
  const advice = !ok && next ? pc.dim(`\n     next: ${next}`) : ''
  return `${mark} ${what.padEnd(8)} ${says}${advice}`
}

const CHECKS: [what: string, check: Check][] = [
  [
    'node',
    () => {
      const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
      const ok = major > 20 || (major === 20 && minor >= 19)
      return { ok, says: process.version, next: 'Install Node 20.19 or newer.' }
    },
  ],
  [
    'agent',
    ({ caller }) => {
      const says = caller.given ? caller.agent : `${caller.agent} (shared by all your terminals)`
      return { ok: true, says }
    },
  ],
  [
    'folder',
    ({ place }) => {
      const folder = folderOf(place)
      const mode = statSync(folder, { throwIfNoEntry: false })?.mode
      if (mode === undefined) {
        return { ok: true, says: `${folder} (made by the first write)` }
      }
      const ok = (mode & 0o077) === 0
      const says = `${folder}${ok ? '' : ' can be read by other logins'}`
      return { ok, says, next: `chmod 700 ${folder}` }
    },
  ],
  [
    'git',
    ({ place }) => {
      const folder = folderOf(place)
      const tracked = existsSync(folder) && isTracked(folder)
      const says = tracked ? `git tracks ${folder}` : 'not tracked'
      return { ok: !tracked, says, next: `git rm -r --cached ${folder}, and ignore it` }
    },
  ],
  [
    'config',
    async ({ place, env }) => {
      const { readConfig } = await import('../../daemon/main.ts')
      const { projects, slots } = readConfig(folderOf(place), env)
      const names = Object.keys(projects)
      const says = names.length === 0 ? 'no projects: nothing is dispatched' : names.join(', ')
      return { ok: true, says: `${says} (${slots.max} slots)` }
    },
  ],
  [
    'server',
    ({ place }) => {
      const server = serverIn(folderOf(place))
      if (!server) return { ok: true, says: 'none runs' }
      const { pid, url } = server
      const ok = !isStopped(pid)
      const says = `${url} (PID: ${pid})${ok ? '' : ' is stopped'}`
      return { ok, says, next: `Let it go on: kill -CONT ${pid}` }
    },
  ],
  [
    'store',
    async ({ place }) => {
      if (!storeExists(place)) return { ok: true, says: 'nothing written yet' }
      const { ok, problems, events } = await checkStore(place)
      const says = ok ? `${place.kind}, sound, ${events} events` : problems.join('; ')
      return { ok, says, next: 'leasehold db restore BACKUP' }
    },
  ],
  [
    'memory',
    async (context) => {
      if (context.place.kind === 'file' || !storeExists(context.place)) {
        return { ok: true, says: 'no notes' }
      }
      const asked = operationNamed.get('memory.status')!
      const status = (await context.call(asked, {})) as ShownStatus
      const { notes, embedded, waiting, put_aside, provider } = status
      const behind = put_aside > 0 ? `, ${put_aside} put aside` : ''
      const says = `${notes} notes, ${embedded} embedded by ${provider ?? 'nobody'}`
      const next = 'leasehold memory status says why; leasehold memory retry tries again'
      return { ok: put_aside === 0, says: `${says}, ${waiting} to do${behind}`, next }
    },
  ],
  [
    'writing',
    async (context) => {
      if (!storeExists(context.place)) return { ok: true, says: 'not tried' }
      await context.store().write(() => undefined)
      return { ok: true, says: 'the store takes writes' }
    },
  ],
]
