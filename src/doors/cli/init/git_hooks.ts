import { basename, dirname, join } from 'node:path'
import { HASHES, hasBlock, withHeadBlock, withoutBlock } from './block.ts'
import { type FileState, lookAt, MISSING } from './files.ts'
import { fileOf, type InitPart, textOf } from './part.ts'

export const GIT_HOOKS = ['pre-commit', 'pre-push'] as const
export type GitHook = (typeof GIT_HOOKS)[number]

const FORMER = 'before-leasehold'
const EXECUTABLE = 0o755
const SHEBANG = '#!/bin/sh\n'
const SHELL = /^#!\s*(?:\/usr\/bin\/env\s+(?:-S\s+)?)?(?:\S*\/)?(?:ba|da|z|k|a)?sh\b/

/**
 * A shell script gets our block at its head: it goes on as before once we agree, and finds in its
 * input what it would have found. Any other hook (another language, a link, or one that is switched
 * off) is kept beside ours, which calls it; that takes two parts, the copy first.
 */
export function gitHookParts(
  folder: string,
  hook: GitHook,
  { bin, isLocal, why }: { bin: string | undefined; isLocal: boolean; why: string },
): InitPart[] {
  const path = join(folder, hook)
  const former = `${path}.${FORMER}`
  const isKept = isOpaque(lookAt(path), path) || lookAt(former).kind !== 'missing'
  const body = isKept ? `${ask(hook, bin)}\n${callFormer(hook)}` : ask(hook, bin)
  const main: InitPart = {
    path,
    why,
    isLocal,
    isLinkKept: true,
    put: (before) => {
      const isShell = before.kind === 'file' && !isOpaque(before, path)
      const text = isShell ? textOf(path, before.bytes) : SHEBANG
      return fileOf(withHeadBlock(text, body, HASHES, path), isShell ? before.mode : EXECUTABLE)
    },
    take: (now) => {
      if (now.kind !== 'file' || isOpaque(now, path)) return now
      const text = textOf(path, now.bytes)
      if (!hasBlock(text, HASHES, path)) return now
      const left = withoutBlock(text, HASHES, path)
      return left.trim() === '' || left === SHEBANG ? lookAt(former) : fileOf(left, now.mode)
    },
  }
  return isKept ? [formerPart(path, former, isLocal), main] : [main]
}

/** The hook that was there, under another name. */
function formerPart(path: string, former: string, isLocal: boolean): InitPart {
  return {
    path: former,
    why: 'the hook that was there, which ours calls',
    isLocal,
    isLinkKept: true,
    put: (before) => (before.kind === 'missing' ? lookAt(path) : before),
    take: () => MISSING,
  }
}

/** Whether a hook is to be left as it is: our lines would not be run in it, or would wake it up. */
function isOpaque(state: FileState, path: string): boolean {
  if (state.kind !== 'file') return state.kind === 'link'
  // Husky starts the files of its folder itself, with sh.
  if ((state.mode & 0o111) === 0 && basename(dirname(path)) !== '.husky') return true
  const head = state.bytes.toString('latin1', 0, 256)
  return head.startsWith('#!') ? !SHELL.test(head) : head.includes('\0')
}

function ask(hook: GitHook, bin: string | undefined): string {
  const path = bin === undefined ? '' : `  PATH="$PATH:${bin}"\n`
  const asking = `(
${path}  command -v leasehold >/dev/null 2>&1 || exit 0
  exec leasehold hook git ${hook} "$@"
)`
  if (hook === 'pre-commit') return `${asking} || exit $?`
  // What is pushed is told on standard input, which can be read only once.
  return `leasehold_refs=$(cat)
printf '%s\\n' "$leasehold_refs" | ${asking} || exit $?
if [ -n "$leasehold_refs" ]; then
  exec <<LEASEHOLD_REFS
$leasehold_refs
LEASEHOLD_REFS
else
  exec </dev/null
fi`
}

const callFormer = (hook: GitHook) => `former="$(dirname "$0")/${hook}.${FORMER}"
if [ -x "$former" ]; then exec "$former" "$@"; fi`
