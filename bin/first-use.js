'use strict'
// From a checkout the command builds itself on first use; a published package brings its build.
const { spawnSync } = require('node:child_process')
const { existsSync, mkdirSync, rmSync, statSync } = require('node:fs')
const path = require('node:path')

const root = path.join(__dirname, '..')
const lock = path.join(root, '.building')
const PATIENCE_MS = 60_000

/** One of many that start at once builds; the others wait for it, or take over if it died. */
exports.build = function build(cli) {
  const until = Date.now() + PATIENCE_MS
  while (!existsSync(cli) && Date.now() < until) {
    if (isMine()) {
      const built = spawnSync(process.execPath, [path.join(root, 'build.mjs')], {
        cwd: root,
        stdio: ['ignore', 2, 2],
      })
      rmSync(lock, { recursive: true, force: true })
      if (built.status !== 0) break
    } else {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
    }
  }
  if (existsSync(cli)) return
  process.stderr.write('error: leasehold could not be built\n  next: npm ci, then try again\n')
  process.exit(75)
}

function isMine() {
  try {
    mkdirSync(lock)
    return true
  } catch {
    const made = statSync(lock, { throwIfNoEntry: false })?.mtimeMs
    if (made !== undefined && Date.now() - made > PATIENCE_MS / 2) {
      rmSync(lock, { recursive: true, force: true })
    }
    return false
  }
}

// npm runs this file after an install from git (`prepare`): it packs what is there then, and no more.
if (require.main === module) {
  const isBuilt = existsSync(path.join(root, 'dist', 'cli.cjs'))
  const canBuild = existsSync(path.join(root, 'node_modules', 'esbuild'))
  if (!isBuilt && canBuild) {
    const args = [path.join(root, 'build.mjs'), '--types']
    process.exit(spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1)
  }
}
