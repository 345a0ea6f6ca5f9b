'use strict'
// From a checkout the command builds itself on first use, and again when the checkout is another; a
// published package brings its build.
const { spawnSync } = require('node:child_process')
const { existsSync, mkdirSync, readFileSync, rmSync, statSync, utimesSync } = require('node:fs')
const path = require('node:path')

const root = path.join(__dirname, '..')
const lock = path.join(root, '.building')
const PATIENCE_MS = 60_000

/** One of many that start at once builds; the others wait for it, or take over if it died. */
exports.build = function build(cli) {
  const until = Date.now() + PATIENCE_MS
  while (!existsSync(cli) && Date.now() < until) {
    let mine
    try {
      mine = isMine()
    } catch (error) {
      fail(`is not built yet, and its folder cannot be written: ${error.message}`, BUILD_ELSEWHERE)
    }
    if (!mine) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
    else if (!isBuilt()) break
  }
  if (!existsSync(cli)) fail('could not be built', 'npm ci, then try again')
}

/**
 * After a pull or a checkout: builds what was made from other sources anew. Where that fails, the
 * former build is used until the checkout changes again.
 */
exports.rebuild = function rebuild(cli) {
  try {
    const isKnown = existsSync(exports.BUILT_FROM)
    const isSame = isKnown && readFileSync(exports.BUILT_FROM, 'utf8') === exports.sources()
    if (!isSame && !isMine()) return
    if (!isSame && !isBuilt()) warn('could not be built: npm ci')
    utimesSync(cli, new Date(), new Date())
  } catch (error) {
    warn(`its folder cannot be written: ${error.message}`)
  }
}

/** What a build is made from, as git names it; empty where there is no git. */
exports.sources = function sources() {
  const parts = ['src', 'build.mjs', 'package-lock.json'].map((each) => `HEAD:${each}`)
  return spawnSync('git', ['rev-parse', ...parts], { cwd: root, encoding: 'utf8' }).stdout || ''
}
exports.BUILT_FROM = path.join(root, 'dist', 'built-from')

const BUILD_ELSEWHERE = 'Build it as a login that may write there: npm ci, then npm run build'

function isBuilt() {
  const options = { cwd: root, stdio: ['ignore', 2, 2] }
  const isThere = existsSync(path.join(root, 'node_modules', 'esbuild'))
  const built = isThere && spawnSync(process.execPath, [path.join(root, 'build.mjs')], options)
  rmSync(lock, { recursive: true, force: true })
  return built && built.status === 0
}

function fail(what, next) {
  process.stderr.write(`error: leasehold ${what}\n  next: ${next}\n`)
  process.exit(1)
}

function warn(why) {
  process.stderr.write(`leasehold: this checkout has changed since it was built, and ${why}\n`)
}

/** Throws what keeps everybody from building here. */
function isMine() {
  try {
    mkdirSync(lock)
    return true
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
    const made = statSync(lock, { throwIfNoEntry: false })?.mtimeMs
    if (made !== undefined && Date.now() - made > PATIENCE_MS / 2) {
      rmSync(lock, { recursive: true, force: true })
    }
    return false
  }
}

// npm runs this file after an install from git (`prepare`): it packs what is there then.
if (require.main === module) {
  const isThere = existsSync(path.join(root, 'dist', 'cli.cjs'))
  const canBuild = existsSync(path.join(root, 'node_modules', 'esbuild'))
  if (!isThere && canBuild) {
    const args = [path.join(root, 'build.mjs'), '--types']
    process.exit(spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1)
  }
}
