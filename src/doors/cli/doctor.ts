import { existsSync, statSync } from 'node:fs'
import type { Command } from 'commander'
import pc from 'picocolors'
import { Refusal } from '../../core/refusal.ts'
import { checkStore } from '../../stores/care.ts'
import { folderOf, storeExists } from '../../stores/open.ts'
import { isTracked } from '../../stores/privacy.ts'
import type { Enter } from './commands.ts'
import type { Context } from './context.ts'
import { print } from './show.ts'

interface Finding {
  what: string
  ok: boolean
  says: string
  next?: string
}

type Check = (context: Context) => Promise<Finding> | Finding

export function addDoctor(root: Command, enter: Enter): void {
  root
    .command('doctor')
    .description('Look whether everything is well here, and say what to do where it is not.')
    .action(async (_, self: Command) => {
      const context = enter(self.optsWithGlobals())
      const findings: Finding[] = []
      for (const check of CHECKS) findings.push(await guarded(check, context))
      const ok = findings.every((finding) => finding.ok)
      print(context.json ? JSON.stringify({ ok, findings }) : findings.map(line).join('\n'))
      if (!ok) process.exitCode = 1
    })
}

/** A check that itself fails is a finding too: the doctor always finishes. */
async function guarded(check: Check, context: Context): Promise<Finding> {
  try {
    return await check(context)
  } catch (error) {
    const next = error instanceof Refusal ? error.next : ''
    return { what: 'store', ok: false, says: (error as Error).message, next }
  }
}

function line({ what, ok, says, next }: Finding): string {
  const mark = ok ? pc.green('ok  ') : pc.red('FAIL')
  const advice = !ok && next ? pc.dim(`\n     next: ${next}`) : ''
  return `${mark} ${what.padEnd(8)} ${says}${advice}`
}

const CHECKS: Check[] = [
  () => {
    const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
    const ok = major > 20 || (major === 20 && minor >= 19)
    return { what: 'node', ok, says: process.version, next: 'Install Node 20.19 or newer.' }
  },
  ({ caller }) => {
    const says = caller.given ? caller.agent : `${caller.agent} (shared by all your terminals)`
    return { what: 'agent', ok: true, says }
  },
  ({ place }) => {
    const folder = folderOf(place)
    const mode = statSync(folder, { throwIfNoEntry: false })?.mode
    if (mode === undefined) {
      return { what: 'folder', ok: true, says: `${folder} (made by the first write)` }
    }
    const ok = (mode & 0o077) === 0
    const says = `${folder}${ok ? '' : ' can be read by other logins'}`
    return { what: 'folder', ok, says, next: `chmod 700 ${folder}` }
  },
  ({ place }) => {
    const folder = folderOf(place)
    const tracked = existsSync(folder) && isTracked(folder)
    const says = tracked ? `git tracks ${folder}` : 'not tracked'
    return { what: 'git', ok: !tracked, says, next: `git rm -r --cached ${folder}, and ignore it` }
  },
  async ({ place }) => {
    if (!storeExists(place)) return { what: 'store', ok: true, says: 'nothing written yet' }
    const { ok, problems, events } = await checkStore(place)
    const says = ok ? `${place.kind}, sound, ${events} events` : problems.join('; ')
    return { what: 'store', ok, says, next: 'leasehold db restore BACKUP' }
  },
  async (context) => {
    if (!storeExists(context.place)) return { what: 'writing', ok: true, says: 'not tried' }
    await context.store().write(() => undefined)
    return { what: 'writing', ok: true, says: 'the store takes writes' }
  },
]
