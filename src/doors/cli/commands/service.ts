import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { Command } from 'commander'
import pc from 'picocolors'
import { Refusal } from '../../../core/refusal.ts'
import { sha256 } from '../../../machine/digest.ts'
import { writePrivate } from '../../../machine/private_file.ts'
import { type Service, serviceOf } from '../../../machine/service.ts'
import { serverIn } from '../../../reach/server_file.ts'
import { folderOf } from '../../../stores/open.ts'
import type { Context } from '../context.ts'
import { print } from '../show/show.ts'
import type { Enter } from './operations.ts'

/** `leasehold service`: the server of this store, started at login and again when it fails. */
export function addService(root: Command, enter: Enter): void {
  const group = root
    .command('service')
    .description('Keep the server running: a systemd user unit, on macOS a launchd agent.')
    .addHelpText('after', EXAMPLES)
  group
    .command('install')
    .description('Write the unit of this store, and start it.')
    .option('--port <n>', 'the port that it serves on', '4747')
    .action(({ port }: { port: string }, self: Command) => {
      install(enter(self.optsWithGlobals()), port)
    })
  group
    .command('uninstall')
    .description('Stop the server, and take its unit away.')
    .action((_, self: Command) => uninstall(enter(self.optsWithGlobals())))
  group
    .command('status')
    .description('Whether the unit is there, and whether it runs.')
    .action((_, self: Command) => {
      const context = enter(self.optsWithGlobals())
      const { name, file, look } = ownService(context)
      const installed = existsSync(file)
      const active = installed && tell(look) === undefined
      if (context.json) return print(JSON.stringify({ name, file, installed, active }))
      const state = installed ? (active ? pc.green('runs') : 'does not run') : 'is not installed'
      print(`${name} ${state}: ${file}`)
    })
}

function install(context: Context, port: string): void {
  const service = ownService(context)
  const folder = folderOf(context.place)
  const server = serverIn(folder)
  if (server && !existsSync(service.file)) {
    throw new Refusal('held', `A server serves this store already (PID: ${server.pid})`, {
      next: 'Stop it, then install the service: leasehold down',
    })
  }
  const { LEASEHOLD_STORE } = context.env
  const env = { LEASEHOLD_DIR: context.place.folder, ...(LEASEHOLD_STORE && { LEASEHOLD_STORE }) }
  const argv = [process.execPath, process.argv[1]!, 'serve', '--port', port]
  mkdirSync(dirname(service.file), { recursive: true })
  // An address in it may have a password.
  writePrivate(
    dirname(service.file),
    basename(service.file),
    service.text({ argv, env, about: `Leasehold, ${folder}` }),
  )
  for (const command of service.start) {
    const failed = tell(command)
    if (failed === undefined) continue
    throw new Refusal('unavailable', `${service.file} is written, but was not started: ${failed}`, {
      next: `Where that works: ${service.start.map((each) => each.join(' ')).join(' && ')}`,
    })
  }
  print(context.json ? JSON.stringify(service) : `${pc.green('installed')} ${service.file}`)
}

function uninstall(context: Context): void {
  const service = ownService(context)
  if (!existsSync(service.file)) {
    throw new Refusal('not_found', `There is no ${service.file}`, {
      next: 'Nothing was installed for this store.',
    })
  }
  for (const command of service.stop) tell(command)
  rmSync(service.file)
  print(context.json ? JSON.stringify(service) : `${pc.green('uninstalled')} ${service.name}`)
}

/** Runs a command of the system; undefined when all went well, else what it said. */
function tell([program, ...args]: string[]): string | undefined {
  const { spawnSync } = process.getBuiltinModule('node:child_process')
  const { status, stderr, error } = spawnSync(program!, args, { encoding: 'utf8' })
  if (status === 0) return undefined
  return error?.message ?? (stderr.trim() || `${program} exited with ${status}`)
}

/** Each store has its own, named by the folder that its state is in. */
function ownService({ place, env }: Context): Service {
  const folder = folderOf(place)
  const around = basename(dirname(folder)).replaceAll(/[^A-Za-z0-9]+/g, '-')
  return serviceOf(`leasehold-${around}-${sha256(folder).slice(0, 6)}`, env)
}

const EXAMPLES = `
The server then starts when you log in, and again when it fails. Each store has a unit of its own.
On Linux it goes on without you after: loginctl enable-linger. The launchd agent is untried.

Examples:
  leasehold service install --port 4750
  leasehold service status
  leasehold service uninstall`
