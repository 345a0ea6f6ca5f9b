import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { Runner } from '../package/run.ts'
import type { Client } from './client.ts'
import { CLIENTS } from './programs.ts'

const ROOT = resolve(import.meta.dirname, '../..')

/** Where programs are kept between runs, unless a folder is given. */
export const usualFolder = () =>
  join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'leasehold-clients')

export interface Installed {
  /** A folder with the programs of all clients that are there, and ours. */
  bin: string
  /** Of our package, as it was installed. */
  own: string
  clients: Client[]
  /** Those that could not be installed or do not start, and why. */
  missing: Map<string, string>
}

/** The clients in `folder`, in the versions that are pinned; this checkout, packed, in `trial`. */
export function install(folder: string, trial: string, wanted: Client[]): Installed {
  const place = join(folder, 'clients')
  const bin = join(trial, 'bin')
  for (const each of [place, bin, join(trial, 'home')]) mkdirSync(each, { recursive: true })
  const runner = new Runner(process.env['HOME'] ?? homedir())
  const manifest = join(place, 'package.json')
  if (!existsSync(manifest)) writeFileSync(manifest, '{ "private": true }\n')
  const missing = new Map<string, string>()
  const clients = wanted.filter((client) => {
    const fault = put(client, place, bin, runner)
    if (fault !== undefined) missing.set(client.kind, fault)
    return fault === undefined
  })
  const packed = runner.must(['npm', 'pack', '--silent', '--pack-destination', trial], ROOT)
  const tarball = join(trial, packed.trim().split('\n').at(-1)!)
  const prefix = join(trial, 'prefix')
  runner.must(['npm', 'install', '-g', '--loglevel=error', '--prefix', prefix, tarball], trial)
  symlinkSync(join(prefix, 'bin/leasehold'), join(bin, 'leasehold'))
  return { bin, own: join(prefix, 'lib/node_modules/leasehold'), clients, missing }
}

/** Installs one client unless it is there, and links its program. Returns what is wrong with it. */
function put(client: Client, place: string, bin: string, runner: Runner): string | undefined {
  const { kind, npm, version } = client
  const about = join(place, 'node_modules', npm, 'package.json')
  const isThere = () =>
    existsSync(about) && (JSON.parse(readFileSync(about, 'utf8')) as Client).version === version
  if (!isThere()) {
    const { code, err } = runner.run(
      ['npm', 'install', '--save-exact', '--loglevel=error', `${npm}@${version}`],
      place,
    )
    if (code !== 0) return `npm could not install it: ${err.trim().split('\n').at(-1)}`
  }
  const program = join(place, 'node_modules', client.program)
  if (!existsSync(program)) return `its package has no ${client.program} for this machine`
  symlinkSync(program, join(bin, kind))
  const PATH = [bin, dirname(process.execPath), '/usr/bin', '/bin'].join(':')
  const said = runner.run(['env', '-i', `PATH=${PATH}`, kind, '--version'], place)
  return said.code === 0 ? undefined : `it does not start: ${said.err.trim().split('\n')[0]}`
}

export const clientsNamed = (names: string[] | undefined) =>
  names === undefined ? CLIENTS : CLIENTS.filter(({ kind }) => names.includes(kind))
