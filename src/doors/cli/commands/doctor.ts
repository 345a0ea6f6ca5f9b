import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Command } from 'commander'
import pc from 'picocolors'
import { Refusal, REFUSALS } from '../../../core/refusal.ts'
import * as search from '../../../operations/search.ts'
import * as stats from '../../../operations/stats.ts'
import { checkStore, isUnused } from '../../../stores/care.ts'
import { ELSEWHERE, fileSystemOf } from '../../../machine/file_system.ts'
import { folderOf, storeExists } from '../../../stores/open.ts'
import { refuseUnsafeFolder } from '../../../machine/place.ts'
import { isTracked } from '../../../machine/privacy.ts'
import { isStopped } from '../../../machine/process.ts'
import { serverIn, serverName } from '../../../reach/server_file.ts'
import { VERSION } from '../../../machine/version.ts'
import type { Enter } from './operations.ts'
import type { Context } from '../context.ts'
import { checkHooks, checkPrograms, type DoctorLook } from './doctor_programs.ts'
import { print } from '../show/show.ts'
import { io } from '../../io.ts'

interface Finding extends DoctorLook {
  what: string
}

const isDamage = ({ damaged }: Finding) => damaged === true

type Check = (context: Context) => Promise<DoctorLook> | DoctorLook

export function addDoctor(root: Command, enter: Enter): void {
  root
    .command('doctor')
    .description('Check that everything works here, and say how to fix what does not.')
    .action(async (_, self: Command) => {
      const context = enter(self.optsWithGlobals())
      const findings: Finding[] = []
      for (const [what, check] of CHECKS) findings.push(await guarded(what, check, context))
      const ok = findings.every((finding) => finding.ok)
      const shown = () => findings.map((each, i) => line(each, findings.slice(0, i))).join('\n')
      print(context.json ? JSON.stringify({ ok, findings }) : shown())
      if (!ok) io().exitCode = findings.some(isDamage) ? REFUSALS.damaged.exit : 1
    })
}

/** A check that itself fails is a finding too: the doctor always finishes. */
async function guarded(what: string, check: Check, context: Context): Promise<Finding> {
  try {
    return { what, ...(await check(context)) }
  } catch (error) {
    const { next, code } = error instanceof Refusal ? error : { next: '', code: undefined }
    return { what, ok: false, says: (error as Error).message, next, damaged: code === 'damaged' }
  }
}

function line({ what, ok, says, next }: Finding, before: Finding[]): string {
  const mark = ok ? pc.green('ok  ') : pc.red('FAIL')
  const same = ok ? undefined : before.find((each) => each.says === says)
  if (same) return `${mark} ${what.padEnd(8)} for the same reason as ${same.what}`
  const advice = !ok && next ? pc.dim(`\n     next: ${next}`) : ''
  return `${mark} ${what.padEnd(8)} ${says}${advice}`
}

/** What the system says when a file is made in a folder, or in the one that it would be made in. */
function unwritable(folder: string): string | undefined {
  let existing = folder
  while (!existsSync(existing)) existing = dirname(existing)
  const path = join(existing, `.leasehold-doctor-${process.pid}`)
  try {
    writeFileSync(path, 'x'.repeat(4096), { flag: 'wx', mode: 0o600 })
    return undefined
  } catch (error) {
    return (error as Error).message
  } finally {
    rmSync(path, { force: true })
  }
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
      refuseUnsafeFolder(folder)
      const refused = unwritable(folder)
      if (refused !== undefined) {
        const next = /ENOSPC|EDQUOT/.test(refused)
          ? 'Free some space. Nothing that was acknowledged is lost; reads go on.'
          : 'Make it writable for this login, or point LEASEHOLD_DIR elsewhere.'
        return { ok: false, says: `${folder} cannot be written: ${refused}`, next }
      }
      if (mode === undefined) {
        return { ok: true, says: `${folder} (made by the first write)` }
      }
      const ok = (mode & 0o077) === 0
      const says = `${folder}${ok ? '' : ' can be read by other logins'}`
      return { ok, says, next: `chmod 700 ${folder}` }
    },
  ],
  [
    'disk',
    ({ place }) => {
      const { name, refused } = fileSystemOf(folderOf(place))
      const says = refused ? `${name} is shared by machines, or may be` : name
      return { ok: !refused || place.kind === 'postgres', says, next: ELSEWHERE }
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
      const { readConfig, waitingText } = await import('../../../daemon/main.ts')
      const { projects, slots, waiting } = readConfig(folderOf(place), env)
      if (waiting.length > 0) {
        return { ok: false, says: waitingText(waiting), next: 'leasehold config approve' }
      }
      const names = Object.keys(projects)
      const says = names.length === 0 ? 'no projects: nothing is dispatched' : names.join(', ')
      return { ok: true, says: `${says} (${slots.max} slots)` }
    },
  ],
  ['programs', checkPrograms],
  ['hooks', checkHooks],
  [
    'store',
    async ({ place }) => {
      if (isUnused(place)) return { ok: true, says: 'nothing written yet' }
      const { ok, problems, events, hindered } = await checkStore(place)
      if (hindered) throw hindered
      const says = ok ? `${place.kind}, sound, ${events} events` : problems.join('; ')
      return { ok, says, next: 'leasehold db restore BACKUP', damaged: !ok }
    },
  ],
  [
    'server',
    ({ place }) => {
      const server = serverIn(folderOf(place))
      if (!server) return { ok: true, says: 'none runs' }
      const { pid, url, version } = server
      const says = `${serverName(folderOf(place))} at ${url} (PID: ${pid})`
      if (isStopped(pid)) {
        return { ok: false, says: `${says} is stopped`, next: `Let it go on: kill -CONT ${pid}` }
      }
      const next = 'leasehold down, then leasehold up'
      return { ok: version === VERSION, says: `${says}, version ${version}`, next }
    },
  ],
  [
    'memory',
    async (context) => {
      if (context.place.kind === 'file' || !storeExists(context.place)) {
        return { ok: true, says: 'no notes' }
      }
      const status = await context.call(search.status, {})
      const { notes, embedded, waiting, put_aside, provider } = status
      const behind = put_aside > 0 ? `, ${put_aside} put aside` : ''
      const by = provider ? `${embedded} embedded by ${provider}` : 'none embedded yet'
      const says = `${notes} ${notes === 1 ? 'note' : 'notes'}, ${by}`
      const next = 'leasehold memory status says why; leasehold memory retry tries again'
      return { ok: put_aside === 0, says: `${says}, ${waiting} to do${behind}`, next }
    },
  ],
  [
    'work',
    async (context) => {
      if (!storeExists(context.place)) return { ok: true, says: 'none' }
      const { health, items } = await context.call(stats.stuck, { limit: 1 })
      const says = health.why || 'nothing is stuck that does not go on by itself'
      return { ok: health.state !== 'degraded', says, next: items[0]?.next ?? '' }
    },
  ],
  [
    'alerts',
    async (context) => {
      if (!storeExists(context.place)) return { ok: true, says: 'none' }
      const { items } = await context.call(stats.listAlerts, {})
      const lost = items.filter(({ undelivered }) => undelivered.length > 0)
      const says = lost.map(({ message, undelivered }) => `${message} (${undelivered.join('; ')})`)
      if (lost.length === 0) return { ok: true, says: `${items.length} now, none undelivered` }
      const next = 'Mend the channel; saving config.json, or a restart, tries again.'
      return { ok: false, says: says.join(', '), next }
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
