import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Client } from './client.ts'
import type { World } from './world.ts'

/** Where `npm test` finds what real clients sent to our hooks. */
export const RECORDINGS = join(import.meta.dirname, '../../test/fixtures/clients')

export const recordingsOf = ({ kind, version }: Pick<Client, 'kind' | 'version'>) =>
  join(RECORDINGS, `${kind}-${version}`, 'hooks')

/** One call of our hook by a real client, and what came of it. */
export interface Recording {
  client: string
  version: string
  /** As the client's settings name it on the hook's command line. */
  event: string
  input: Record<string, unknown>
  outcome: 'refused' | 'spoke' | 'silent'
}

/** In recordings, for the folders of the machine that made them. */
export const PLACES = { repo: '{repo}', home: '{home}' }

/**
 * The programs of `bin`, with a `leasehold` that keeps what hooks are told in `into`. A second
 * shell reads the script, so that its process is a shell to those who look for the agent's.
 */
export function recordingBin(bin: string, into: string, names: string[]): string {
  const place = join(into, 'bin')
  mkdirSync(place, { recursive: true })
  for (const name of names) symlinkSync(join(bin, name), join(place, name))
  const script = join(into, 'record.sh')
  writeFileSync(
    script,
    `at=$(mktemp "${into}/call.XXXXXXXX")
cat > "$at.in"
"${bin}/leasehold" "$@" < "$at.in" > "$at.out" 2> "$at.err"
code=$?
echo "$3 $code" > "$at.end"
cat "$at.out"
cat "$at.err" >&2
exit $code
`,
  )
  const program = join(place, 'leasehold')
  writeFileSync(
    program,
    `#!/bin/sh
case "$1 $2" in
hook\\ git) ;;
hook\\ *) exec sh "${script}" "$@" ;;
esac
exec "${bin}/leasehold" "$@"
`,
  )
  chmodSync(program, 0o755)
  return place
}

export const outcomeOf = (code: string, out: string): Recording['outcome'] => {
  const isDenied = /"(?:permissionDecision|permission|decision)":"deny"|"deny":/.test(out)
  if (code === '2' || isDenied) return 'refused'
  return /"(?:additionalContext|context)":/.test(out) ? 'spoke' : 'silent'
}

/** Replaces the recordings of a client by those in `from`: one of each kind of call and outcome. */
export function keepRecordings(from: string, client: Client, { repo, home }: World): number {
  const folder = recordingsOf(client)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const dashed = repo.replaceAll(/[^\da-z]/gi, '-')
  const scrubbed = (text: string) =>
    text.replaceAll(repo, PLACES.repo).replaceAll(home, PLACES.home).replaceAll(dashed, 'repo')
  const kept = new Set<string>()
  for (const end of readdirSync(from).filter((name) => name.endsWith('.end'))) {
    const read = (kind: string) => readFileSync(join(from, end.replace(/end$/, kind)), 'utf8')
    const [event = '', code = ''] = read('end').trim().split(' ')
    const input = JSON.parse(scrubbed(read('in'))) as Recording['input']
    const { tool_name, tool, agent_id } = input
    const outcome = outcomeOf(code, read('out'))
    const who = agent_id === undefined ? '' : 'subagent'
    const said = [tool_name, tool].find((each) => typeof each === 'string')
    const name = [event, said, who, outcome].filter(Boolean).join('.')
    // What it says of its subagents there are paths of its own making, and we do nothing with it.
    if (kept.has(name) || /agent$/i.test(said ?? '')) continue
    kept.add(name)
    const { kind, version } = client
    const recording: Recording = { client: kind, version, event, input, outcome }
    writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(recording, undefined, 2)}\n`)
  }
  return kept.size
}
