import type { PAGE_RULES } from './tidy_pages.ts'
import type { SHAPE_RULES } from './tidy_rules.ts'
import type { WORD_RULES } from './tidy_words.ts'

interface Bad {
  rule: keyof typeof SHAPE_RULES | keyof typeof WORD_RULES | keyof typeof PAGE_RULES
  /** A small tree, by path; the last file is the bad one. */
  files: Record<string, string>
  /** Where the fault must be reported. */
  at: string
}

function bad(rule: Bad['rule'], path: string, text: string, line = 1): Bad {
  return { rule, files: { [path]: text }, at: `${path}:${line}` }
}

/** `path` imports `target`, and `target` exists: only the wall can object. */
function across(path: string, target: string, clause = 'import { a }'): Bad {
  const up = '../'.repeat(path.split('/').length - 1)
  const files = { [target]: 'export const a = 1\n', [path]: `\n${clause} from '${up}${target}'\n` }
  return { rule: 'importWalls', files, at: `${path}:2` }
}

const longFunction = (name: string) =>
  `export function ${name}(n: number) {\n${'  n += 1\n'.repeat(8)}  return n\n}\n`

const walls: Bad[] = [
  bad('importWalls', 'src/core/a.ts', `import { readFileSync } from 'node:fs'`),
  bad('importWalls', 'src/core/a.ts', `import { z } from 'zod'`),
  bad('importWalls', 'src/core/a.ts', `const { z } = await import('zod')`),
  bad('importWalls', 'src/core/a.ts', `import {\n  b,\n} from './gone.ts'`, 3),
  across('src/core/a.ts', 'src/stores/b.ts'),
  across('src/core/a.ts', 'src/stores/b.ts', 'import type { a }'),
  across('src/core/a.ts', 'src/stores/b.ts', 'export { a }'),
  across('src/core/a.ts', 'test/b.ts'),
  across('src/core/locks/a.ts', 'src/core/paths/b.ts'),
  across('src/core/memory/a.ts', 'src/core/stats/b.ts', 'import type { a }'),
  across('src/machine/a.ts', 'src/stores/b.ts'),
  across('src/stores/a.ts', 'src/operations/b.ts'),
  across('src/stores/a.ts', 'src/reach/b.ts'),
  across('src/stores/postgres/a.ts', 'src/core/queue/lane.ts'),
  across('src/stores/sqlite/a.ts', 'src/core/locks/sweep.ts'),
  across('src/stores/writer/a.ts', 'src/core/tasks/claim.ts'),
  across('src/reach/a.ts', 'src/client/b.ts'),
  across('src/stores/sqlite/a.ts', 'src/doors/http/b.ts'),
  across('src/operations/a.ts', 'src/stores/b.ts'),
  across('src/operations/a.ts', 'src/doors/cli/b.ts'),
  across('src/doors/http/a.ts', 'src/doors/mcp/b.ts'),
  across('src/doors/http/a.ts', 'src/daemon/b.ts'),
  across('src/client/a.ts', 'src/doors/http/b.ts'),
  across('src/hooks/a.ts', 'src/client/b.ts'),
  bad('storeIndexes', 'src/stores/a.ts', `const SMALL = new Set([\n  'ready_in',\n])`, 2),
  bad(
    'storeIndexes',
    'src/stores/writer/a.ts',
    `for (const each of view.scan("tickets_due", '')) {}`,
  ),
  bad('importWalls', 'src/doors/http/a.ts', `import { Command } from 'commander'`),
  bad('importWalls', 'src/stores/open.ts', `import { DatabaseSync } from 'node:sqlite'`),
  bad('importWalls', 'src/hooks/claude.ts', `import { z } from 'zod/mini'`),
]

const core: Bad[] = [
  ...[
    'const at = Date.now()',
    'const at = new Date()',
    'const at = performance.now()',
    'const id = process.pid',
    'const home = process.env.HOME',
    'const dice = Math.random()',
    'const id = crypto.randomUUID()',
    'fs.rmSync(name)',
    'setTimeout(go, 1)',
    'const row = await load()',
    'export async function go() {}',
    'names.sort((a, b) => a.localeCompare(b))',
    'const text = `it is ${Date.now()}`',
  ].map((text) => bad('corePurity', 'src/core/a.ts', `\n${text}\n`, 2)),
  bad('coreDocs', 'src/core/a.ts', longFunction('go')),
  bad('coreDocs', 'src/core/a.ts', `// Not a doc comment.\n${longFunction('go')}`, 2),
  bad('coreDocs', 'src/core/a.ts', longFunction('go').replace('n: number', '\n  n: number,\n')),
  bad('fileSizes', 'src/core/a.ts', 'x\n'.repeat(401), 400),
  bad('fileSizes', 'test/a.test.ts', 'x\n'.repeat(401), 400),
  bad('fileSizes', 'src/core/a.ts', 'x\n'.repeat(150), 1),
  bad('columns', 'src/core/a.ts', `const a = '${'x'.repeat(100)}'`),
  bad('columns', 'src/stores/sqlite/002_next.sql', `-- ${'x'.repeat(98)}`),
]

const words: Bad[] = [
  ...[
    'const mutex = 1',
    'const workspaceId = 1',
    "const text = 'no such tenant'",
    '// The backlog of a user.',
    'const lease = { owner: 1 }',
    'const text = `held by the owner of ${name}`',
    'interface JobRow {}',
    "const text = 'the job is done'",
    'const worker_id = 1',
    'const leaseToken = 1',
    "const text = 'your fencing token'",
    'const FENCE_VERSION = 1',
    'function refreshLease() {}',
    'type Execution = string',
    'class MemoryEntry {}',
    'class HeldException {}',
  ].map((text) => bad('glossary', 'src/core/a.ts', `\n${text}\n`, 2)),
  ...['interface Found {}', 'class Found {}', 'type Found = string'].map((text): Bad => {
    const files = {
      'src/core/a.ts': 'export interface Found {}',
      'src/core/b.ts': `\nexport ${text}`,
    }
    return { rule: 'uniqueTypes', files, at: 'src/core/b.ts:2' }
  }),
  bad('sqlText', 'src/stores/a.ts', 'db.exec(`DELETE FROM task WHERE id = ${id}`)'),
  bad('sqlText', 'src/stores/a.ts', 'db.exec(`PRAGMA user_version = ${n}`)'),
  bad('sqlText', 'src/stores/a.ts', 'const q = `select * from ${table} where id = 1`'),
  bad('sqlText', 'src/stores/a.ts', `db.exec('SELECT * FROM ' + table)`),
  bad('sqlText', 'bench/a.ts', 'db.exec(\n  `UPDATE task SET title = ${title}`,\n)', 2),
  bad('machineNames', 'docs/guide.md', 'npm --registry https://registry.example.org ci'),
  bad('machineNames', 'test/a.ts', `const root = '/work/main'`),
  bad('machineNames', 'README.md', 'see /root/.leasehold'),
  bad('machineNames', 'src/stores/a.ts', `const path = '/tmp/store'`),
  bad('pins', 'package-lock.json', '{\n  "resolved": "x"\n}', 2),
  bad('pins', 'package-lock.json', '{"packages":{"a":{"optionalDependencies":{"b":"1"}}}}', 1),
  bad('pins', 'package.json', '{\n  "dependencies": {\n    "zod": "^4.6.7"\n  }\n}', 3),
  bad('pins', 'package.json', '{\n  "overrides": { "rolldown": "latest" }\n}', 2),
  ...[
    `test.skip('later', () => {})`,
    `describe.only('this', () => {})`,
    `it.todo('that')`,
    `test.skipIf(slow)('x', () => {})`,
    'await new Promise((resolve) => setTimeout(resolve, 50))',
    `import { setTimeout } from 'node:timers/promises'`,
    'await sleep(50)',
  ].map((text) => bad('honestTests', 'test/a.test.ts', `\n${text}\n`, 2)),
  bad('honestTests', 'test/a.test.ts', `// reason:\ntest.skip('no reason after all')\n`, 2),
  bad('silencers', 'src/core/a.ts', '// oxlint-disable-next-line no-console\nconsole.log(1)'),
]

const pages: Bad[] = [
  bad('pagePaths', 'README.md', '\nSee [hooks](docs/gone.md#modes).', 2),
  bad('pagePaths', 'docs/README.md', 'See [hooks](docs/README.md).'),
  bad('pagePaths', 'ARCHITECTURE.md', 'Rules are in `src/core/gone.ts`.'),
  {
    rule: 'pagePaths',
    files: { 'src/core/view.ts': '', 'docs/design/a.md': 'Rules see a `core/gone.ts`.' },
    at: 'docs/design/a.md:1',
  },
  {
    rule: 'pageIndex',
    files: { 'docs/README.md': '- [A](a.md)', 'docs/a.md': '', 'docs/design/b.md': '# B' },
    at: 'docs/design/b.md:1',
  },
  {
    rule: 'styleClasses',
    files: { 'src/web/a.tsx': 'const look = `is-${status}`', 'src/web/a.css': '.is-gone {\n}' },
    at: 'src/web/a.css:1',
  },
]

export const BAD: Bad[] = [...walls, ...core, ...words, ...pages]

/** What looks like a fault to a careless rule, and is none. */
export const FINE: [path: string, text: string][] = [
  ['src/core/a.ts', `const at = new Date(view.wall + 1).toISOString()\n`],
  ['src/core/a.ts', `// Never await here: Date.now() and Math.random() would differ.\n`],
  ['src/core/a.ts', `const next = 'await the process. Then import x from "y"'\n`],
  ['src/core/a.ts', `const pid = lease.process?.pid ?? lease.process.host\n`],
  ['src/core/a.ts', `function f(process: ProcessRef) {\n  return process.pid\n}\n`],
  ['src/core/a.ts', `import { acquireLocks } from './locks/lock.ts'\n`],
  ['src/core/a.ts', `/** Says what it does. */\n${longFunction('go')}`],
  ['src/core/a.ts', `export function short() {\n  return 1\n}\n`],
  ['src/core/a.ts', `const half = (a + b) / 2 // the owner's half\nconst re = /'[/]\`/\n`],
  ['src/operations/a.ts', `import type { View } from '../core/view.ts'\n`],
  ['src/operations/a.ts', `import { z } from 'zod'\n`],
  ['src/doors/cli/a.ts', `import { Command } from 'commander'\n`],
  ['src/doors/cli/a.ts', `const text = 'an access token, a worker thread, a background job'\n`],
  ['src/doors/cli/a.ts', `const adminToken = env.LEASEHOLD_TOKEN\n`],
  ['src/doors/cli/a.ts', `const code = (error as NodeJS.ErrnoException).code\n`],
  ['src/daemon/serve.ts', `process.on('uncaughtException', stop)\n`],
  ['src/hooks/cursor.ts', `// reason: Cursor's own field\nconst roots = input.workspace_roots\n`],
  ['src/stores/a.ts', `import { type View, NotLoaded } from '../core/view.ts'\n`],
  ['src/stores/a.ts', `import type { Lock } from '../core/locks/lock.ts'\n`],
  ['src/stores/a.ts', `const scans = { ready_in: 'key', table: 'host_settings' }\n`],
  ['src/stores/a.ts', 'db.prepare(`SELECT * FROM task\n  WHERE id = ?`)\n'],
  ['src/stores/a.ts', 'const next = `Wait for ${name}, or select another where you can`\n'],
  ['src/stores/a.ts', `// See https://example.org/${'x'.repeat(100)}\n`],
  ['src/stores/a.ts', `const path = '/proc/self/work/root'\n`],
  ['test/a.test.ts', `// reason: needs a real disk\ntest.skip('full disk', () => {})\n`],
  ['test/a.test.ts', `const text = 'test.skip and setTimeout(resolve, 50)'\n`],
  ['test/a.test.ts', `const timer = setTimeout(() => child.kill(), 5_000)\n`],
  ['test/a.test.ts', `// @ts-expect-error -- a caller without types may send this\ncall(1)\n`],
  ['ARCHITECTURE.md', 'See `core/view.ts`, `core/locks/lock`, [it](src/core/view.ts#L1).\n'],
  ['README.md', 'The note `project/web/build.md`, and `src/**` of [you](https://a.org/b.md).\n'],
  ['package.json', '{\n  "dependencies": {\n    "zod": "4.6.7"\n  },\n  "files": ["a"]\n}\n'],
]
