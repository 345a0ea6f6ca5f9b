import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { DemoTask } from './words.ts'

const NAMES = 'cart login search user order mail stock price tax shipping returns report'.split(' ')
export const FILES = NAMES.map((name) => `src/${name}.ts`)
export const TODO = 'TODO.md'

/** A small repository of the kind that agents work in. */
export function makeRepository(folder: string): void {
  for (const file of FILES) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), `// ${file}\n`)
  }
  git(folder, 'init', '--quiet')
  commit(folder, 'Begin')
}

/** What there is to do: each task is one line in one of the files, mixed alike in every run. */
export function demoTasks(count: number): DemoTask[] {
  return Array.from({ length: count }, (_, i) => {
    const mixed = Math.imul(i + 1, 0x9e3779b1) >>> 8
    return { id: String(i + 1), file: FILES[mixed % FILES.length]! }
  })
}

export function commit(folder: string, message: string): void {
  git(folder, 'add', '--all')
  git(folder, 'commit', '--quiet', '--no-verify', '--message', message)
}

/** Somebody who tries this out may have no name in git yet, or sign what they commit. */
const WHO = ['-c', 'user.name=leasehold demo', '-c', 'user.email=demo@localhost']
const UNSIGNED = ['-c', 'commit.gpgSign=false']

/** Whether it did so. Where git is missing the files are still real; only their history is not. */
function git(folder: string, ...args: string[]): boolean {
  try {
    execFileSync('git', [...WHO, ...UNSIGNED, ...args], { cwd: folder, stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Every line of every file that agents edit. */
export function linesIn(folder: string): Set<string> {
  return new Set(FILES.flatMap((file) => readFileSync(join(folder, file), 'utf8').split('\n')))
}

/** A whole file, as editors save it: nobody ever reads half of it. */
export function saveFile(path: string, text: string, agent: string): void {
  const temporary = `${path}.${agent}`
  writeFileSync(temporary, text)
  renameSync(temporary, path)
}
