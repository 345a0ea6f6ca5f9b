import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const FOLDER = resolve('node_modules/.cache/leasehold-peers')
/** Both peers need Node 22, which comes from npm into the same folder. */
const PACKAGES = { 'graphile-worker': '0.18.0', 'pg-boss': '12.35.0', node: '22' }

export const PEER_NODE = join(FOLDER, 'node_modules/node/bin/node')

/** Installs the peers if they are not there yet. Says why when it cannot be done. */
export function installPeers(): string | undefined {
  if (isInstalled()) return undefined
  console.error('Installing graphile-worker and pg-boss, and a Node 22 for them …')
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(join(FOLDER, 'package.json'), '{"private":true}\n')
  const wanted = Object.entries(PACKAGES).map(([name, version]) => `${name}@${version}`)
  spawnSync('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...wanted], {
    cwd: FOLDER,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return isInstalled() ? undefined : 'The peers could not be installed: they need the registry.'
}

function isInstalled(): boolean {
  const parts = ['graphile-worker/dist/index.js', 'pg-boss/dist/index.js', 'node/bin/node']
  return parts.every((part) => existsSync(join(FOLDER, 'node_modules', part)))
}

/** A module of a peer; only in a process that runs on `PEER_NODE`. */
export function importPeer(file: string): Promise<unknown> {
  return import(pathToFileURL(join(FOLDER, 'node_modules', file)).href)
}
