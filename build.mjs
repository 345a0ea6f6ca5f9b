// Bundles the command line into one CommonJS file: it starts about 10 ms sooner than as modules.
import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

process.chdir(dirname(fileURLToPath(import.meta.url)))
/** Stands at the head of the program and of its code cache: the two belong together, or not. */
const id = randomBytes(16).toString('hex')
const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
const test = process.argv.includes('--test')
const out = test ? 'dist/test' : 'dist'

/** Commander loads child_process for a feature we do not use; that alone costs 4 ms per start. */
const lean = {
  name: 'lean',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:child_process$/ }, ({ importer }) =>
      importer.includes('commander') ? { path: 'child_process', namespace: 'lean' } : undefined,
    )
    onLoad({ filter: /.*/, namespace: 'lean' }, () => ({ contents: 'module.exports = {}' }))
  },
}

/** Made when it is asked for: a hook never does, and it takes a millisecond. */
const OWN_URL =
  "const __own={get url(){return require('node:url').pathToFileURL(__filename).href}};"

/** What only some commands need is a bundle of its own, named by its first source file. */
const BUNDLES = {
  daemon: 'src/daemon/main.ts',
  mcp: 'src/doors/mcp/main.ts',
  init: 'src/doors/cli/init/main.ts',
  demo: 'src/doors/cli/demo/main.ts',
  demo_agent: 'src/doors/cli/demo/agent.ts',
  runner: 'src/daemon/runner/main.ts',
  keeper: 'src/daemon/worktrees/main.ts',
  postgres: 'src/stores/postgres/driver.ts',
  hook: 'src/hooks/entry.ts',
  direct: 'src/reach/direct.ts',
  cli: 'src/doors/cli/entry.ts',
}
const bundleOf = new Map(Object.entries(BUNDLES).map(([name, path]) => [resolve(path), name]))

/** An `import()` of the first source of another bundle loads that bundle. */
const apart = {
  name: 'apart',
  setup({ onResolve }) {
    onResolve({ filter: /\.ts$/ }, ({ kind, path, resolveDir }) => {
      const name = kind === 'dynamic-import' && bundleOf.get(resolve(resolveDir, path))
      return name ? { path: `./${name}.cjs`, external: true } : undefined
    })
  },
}

// Somebody may be running what is there now: new files take its place whole, the program last.
const fresh = `${out}/fresh-${process.pid}`
mkdirSync(fresh, { recursive: true })
try {
  await build({
    entryPoints: BUNDLES,
    outdir: fresh,
    outExtension: { '.js': '.cjs' },
    bundle: true,
    platform: 'node',
    target: 'node20.19',
    format: 'cjs',
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    external: ['@photostructure/sqlite', 'pg-native'],
    // Its main file cannot be bundled; this one can.
    alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' },
    banner: { js: `//${id}\n${OWN_URL}` },
    define: {
      'import.meta.url': '__own.url',
      LEASEHOLD_VERSION: JSON.stringify(version),
      LEASEHOLD_TEST_BUILD: String(test),
    },
    // A plain require keeps the way open for the code cache, and is faster.
    supported: { 'dynamic-import': false },
    plugins: [lean, apart],
    logLevel: 'warning',
  })
  // The model's package is a module that only modules can import.
  await build({
    entryPoints: { embedder: 'src/daemon/embedding/embedder.ts' },
    outdir: fresh,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    target: 'node20.19',
    format: 'esm',
    external: ['@lat.md/*'],
    logLevel: 'warning',
  })
  for (const path of sqlFiles()) {
    const name = basename(path)
    copyFileSync(path, `${fresh}/${name}`)
    renameSync(`${fresh}/${name}`, `${out}/${name}`)
  }
  const parts = readdirSync(fresh).filter((name) => /\.[cm]js$/.test(name) && name !== 'cli.cjs')
  for (const name of ['hook.cjs', 'cli.cjs']) refuseLetters(`${fresh}/${name}`)
  for (const name of [...parts, 'cli.cjs']) renameSync(`${fresh}/${name}`, `${out}/${name}`)
  if (!test) {
    await keepCode(fresh)
    await buildSdk(fresh)
    await buildWeb(fresh)
    const { BUILT_FROM, sources } = createRequire(import.meta.url)('./bin/first-use.js')
    writeFileSync(BUILT_FROM, sources())
  }
} finally {
  rmSync(fresh, { recursive: true })
}

/** One letter beyond ASCII would make all of it twice as long in memory; see bin/leasehold. */
function refuseLetters(path) {
  const found = /.{0,40}[^\0-\x7f]/.exec(readFileSync(path, 'utf8'))
  if (found) throw new Error(`write it as an escape, in ${basename(path)}: ${found[0]}`)
}

/** Runs the commands whose start matters most, and keeps what V8 compiled for them. */
async function keepCode(folder) {
  const state = resolve(folder, 'state')
  const cache = join(folder, 'cli.cache')
  const env = { ...process.env, LEASEHOLD_DIR: state, LEASEHOLD_STORE: '', LEASEHOLD_TOKEN: '' }
  const run = (args, more, input) => {
    const options = { env: { ...env, ...more }, stdio: ['pipe', 'ignore', 'ignore'], input }
    execFileSync(process.execPath, ['bin/leasehold', ...args], options)
  }
  run(['lock', 'acquire', 'x', '--agent', 'build'], {})
  run(['lock', 'status', 'x'], { LEASEHOLD_KEEP_CODE: cache })
  renameSync(cache, `${out}/cli.cache`)
  // What most hooks do: they find that a file is written, and ask a daemon.
  const event = {
    session_id: 'build',
    cwd: resolve(folder),
    tool_name: 'Bash',
    tool_input: { command: 'echo x > file.ts' },
  }
  const serve = ['bin/leasehold', 'serve', '--port', '0']
  const server = spawn(process.execPath, serve, { env, stdio: ['ignore', 'pipe', 'ignore'] })
  const exited = once(server, 'exit')
  try {
    await Promise.race([once(server.stdout, 'data'), exited])
    const called = ['hook', 'claude', 'pre-tool-use']
    run(called, { LEASEHOLD_KEEP_CODE: cache }, JSON.stringify(event))
  } finally {
    server.kill()
    await exited
  }
  renameSync(cache, `${out}/hook.cache`)
}

/** What other programs import. Types take longer and are needed by a package only: `--types`. */
async function buildSdk(folder) {
  await build({
    entryPoints: { index: 'src/index.ts' },
    outdir: `${folder}/sdk`,
    bundle: true,
    splitting: true,
    platform: 'node',
    target: 'node20.19',
    format: 'esm',
    external: ['@photostructure/sqlite', 'pg'],
    define: { LEASEHOLD_VERSION: JSON.stringify(version), LEASEHOLD_TEST_BUILD: 'false' },
    logLevel: 'warning',
  })
  for (const path of sqlFiles()) copyFileSync(path, `${folder}/sdk/${basename(path)}`)
  rmSync(`${out}/sdk`, { recursive: true, force: true })
  renameSync(`${folder}/sdk`, `${out}/sdk`)
  if (process.argv.includes('--types')) writeTypes()
}

/** The dashboard: static files whose names change with what is in them. */
async function buildWeb(folder) {
  // As it ships, whoever builds it: for a test it would be a larger page, made for debugging.
  process.env.NODE_ENV = 'production'
  const { build: bundle } = await import('vite')
  await bundle({
    configFile: 'src/web/vite.config.ts',
    build: { outDir: resolve(folder, 'web'), emptyOutDir: true },
    logLevel: 'warn',
  })
  rmSync(`${out}/web`, { recursive: true, force: true })
  renameSync(`${folder}/web`, `${out}/web`)
}

function writeTypes() {
  const types = `${out}/types`
  rmSync(types, { recursive: true, force: true })
  execFileSync('node_modules/.bin/tsc', ['-p', 'tsconfig.types.json'], { stdio: 'inherit' })
  const ours = readdirSync(types, { recursive: true }).map(String)
  for (const name of ours.filter((each) => each.endsWith('.d.ts'))) {
    const text = readFileSync(`${types}/${name}`, 'utf8')
    const up = relative(dirname(name), '.') || '.'
    const named = text
      // The compiler keeps our .ts in declarations; a package has .js beside them.
      .replaceAll(/((?:from |import\()(['"])\.[^'"]*)\.ts\2/g, '$1.js$2')
      .replaceAll(/(['"])zod\/(?:v4\/)?(mini|core)\1/g, `$1${up}/zod/v4/$2/index.js$1`)
    writeFileSync(`${types}/${name}`, named)
  }
  keepZodTypes(`${types}/zod`)
}

/** Zod itself is bundled. Of its 8 MB a package needs the declarations that ours refer to. */
function keepZodTypes(to) {
  const from = 'node_modules/zod'
  const isKept = (path) => statSync(path).isDirectory() || path.endsWith('.d.ts')
  for (const part of ['mini', 'core', 'locales']) {
    cpSync(`${from}/v4/${part}`, `${to}/v4/${part}`, { recursive: true, filter: isKept })
  }
  copyFileSync(`${from}/LICENSE`, `${to}/LICENSE`)
}

function sqlFiles() {
  return ['src/stores/sqlite', 'src/stores/postgres'].flatMap((folder) =>
    readdirSync(folder)
      .filter((file) => file.endsWith('.sql'))
      .map((file) => join(folder, file)),
  )
}
