import { useComputed, useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { AnswerOf } from '../../operations/registry.ts'
import { isRefusal, Refusal } from '../../core/refusal.ts'
import { ask } from '../ask.ts'
import { Button } from '../parts/acts.tsx'
import { Search, Trouble } from '../parts/frame.tsx'
import { type StyledText, Terminal } from '../parts/terminal.ts'
import { Virtual } from '../parts/virtual.tsx'
import { count } from '../parts/words.ts'

const LOOK_MS = 1_000
const AWAY_MS = 2_000
const PIECE_BYTES = 256 * 1024
const ROW = 18
const HEIGHT_MAX = 440

type Output = AnswerOf<'run.output'>

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** What a run printed, piece by piece from the first line that is kept; on and on while it runs. */
async function* outputOf(id: string, signal: AbortSignal): AsyncGenerator<Output> {
  let after: string | null = null
  while (!signal.aborted) {
    const place: object = after === null ? { from: 'first' } : { after }
    try {
      const got: Output = await ask('run.output', { id, bytes: PIECE_BYTES, ...place }, signal)
      if (signal.aborted) return
      yield got
      if (got.ended_at !== null && (got.text === '' || got.next === after)) return
      after = got.next
      if (got.text === '') await pause(LOOK_MS)
    } catch (error) {
      if (!isRefusal(error, 'unavailable')) throw error
      await pause(AWAY_MS)
    }
  }
}

/** Reads a run's output into a terminal, and says how far it is. */
function useOutput(id: string) {
  const terminal = useMemo(() => new Terminal(), [])
  const version = useSignal(0)
  const state = useSignal({ isKept: true, isCut: false, bytes: 0 })
  const refusal = useSignal<Refusal | null>(null)
  useEffect(() => {
    const ending = new AbortController()
    const read = async () => {
      for await (const got of outputOf(id, ending.signal)) {
        const { is_kept: isKept, bytes_total: bytes, skipped, text } = got
        state.value = { isKept, bytes, isCut: state.value.isCut || skipped }
        if (text === '') continue
        terminal.write(text)
        version.value += 1
      }
    }
    read().catch((error: unknown) => {
      if (!(error instanceof Refusal)) throw error
      refusal.value = error
    })
    return () => ending.abort()
  }, [])
  return { terminal, version, state, refusal }
}

/** Keeps the end in view, until a person scrolls up; back at the end, it follows again. */
function useFollowing(version: number) {
  const box = useRef<HTMLDivElement>(null)
  const before = useRef(0)
  const follows = useSignal(true)
  const follow = (does: boolean) => {
    follows.value = does
    if (does) box.current?.scrollTo({ top: box.current.scrollHeight })
  }
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current!
    // Only a person scrolls up; what is added below moves nothing.
    if (scrollTop < before.current - 1) follows.value = false
    else if (scrollHeight - scrollTop - clientHeight < ROW) follows.value = true
    before.current = scrollTop
  }
  useEffect(() => {
    if (!box.current) return
    // A person may have scrolled since, and the event of that is still to come.
    if (box.current.scrollTop < before.current - 1) follows.value = false
    if (follows.value) box.current.scrollTop = box.current.scrollHeight
    before.current = box.current.scrollTop
  }, [version])
  return { box, follows, scrolled, follow }
}

export function Log({ id }: { id: string }) {
  const { terminal, version, state, refusal } = useOutput(id)
  const lines = useComputed(() => {
    void version.value
    const isLastEmpty = terminal.text(terminal.length - 1) === ''
    return Array.from({ length: terminal.length - (isLastEmpty ? 1 : 0) }, (_, i) => i)
  }).value
  const { box, follows, scrolled, follow } = useFollowing(version.value)
  const search = useFind(terminal, lines, (i) => {
    follow(false)
    box.current?.scrollTo({ top: Math.max(0, i * ROW - 80) })
  })
  return (
    <div class="log-frame">
      <Trouble refusal={refusal.value} />
      <div class="log-tools">
        {search.field}
        <label class="check">
          <input
            type="checkbox"
            checked={follows.value}
            onChange={(event) => follow(event.currentTarget.checked)}
          />
          Follow
        </label>
        <Button kind="quiet" act={() => void download(id)}>
          Download
        </Button>
        <span class="dim number">{saysLog(lines.length, state.value)}</span>
      </div>
      <div
        class="log"
        role="group"
        aria-label={`Output of run ${id}`}
        style={{ height: `${Math.min(HEIGHT_MAX, Math.max(4, lines.length + 1) * ROW)}px` }}
      >
        {lines.length === 0 ? (
          <p class="dim pad">
            {state.value.isKept ? 'No output yet.' : 'Nothing of its output is kept here.'}
          </p>
        ) : (
          <Virtual
            items={lines}
            row={ROW}
            label="Lines of output"
            keyOf={String}
            boxRef={box}
            scrolled={scrolled}
            render={(i) => <LogLine pieces={terminal.line(i)} isFound={search.at === i} />}
          />
        )}
      </div>
    </div>
  )
}

function saysLog(lines: number, { bytes, isCut }: { bytes: number; isCut: boolean }): string {
  const size = bytes < 10_000 ? `${bytes} bytes` : `${Math.round(bytes / 1024)} KB`
  return `${count(lines, 'line')}, ${size}${isCut ? '; its beginning is no longer kept' : ''}`
}

/** Looks for a text: Enter goes to the next line that has it, with Shift to the one before. */
function useFind(terminal: Terminal, lines: number[], show: (line: number) => void) {
  const text = useSignal('')
  const at = useSignal<number | null>(null)
  const found = useMemo(() => {
    const wanted = text.value.toLowerCase()
    return lines.filter((i) => wanted !== '' && terminal.text(i).toLowerCase().includes(wanted))
  }, [text.value, lines])
  const step = ({ key, shiftKey }: KeyboardEvent) => {
    if (key !== 'Enter' || found.length === 0) return
    const i = found.indexOf(at.value ?? -1)
    const next = shiftKey ? Math.max(i, 0) - 1 : i + 1
    at.value = found.at(next % found.length)!
    show(at.value)
  }
  const field = (
    <>
      <Search label="Find in output" text={text} onKeyDown={step} />
      {text.value !== '' && (
        <span class="dim number" role="status">
          {found.indexOf(at.value ?? -1) + 1} of {found.length}
        </span>
      )}
    </>
  )
  return { field, at: at.value }
}

const LogLine = ({ pieces, isFound }: { pieces: StyledText[]; isFound: boolean }) => (
  <code class={isFound ? 'log-line is-found' : 'log-line'}>
    {pieces.map(({ text, style }, i) => (
      <span key={i} class={style}>
        {text}
      </span>
    ))}
  </code>
)

/** As the command wrote it, with all that a terminal would have obeyed. */
async function download(id: string): Promise<void> {
  const parts: string[] = []
  for await (const { text } of outputOf(id, new AbortController().signal)) {
    if (text === '') break
    parts.push(text)
  }
  save(`${id}.log`, parts)
}

/** Hands a text to the person as a file. */
function save(name: string, parts: string[]): void {
  const url = URL.createObjectURL(new Blob(parts))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
