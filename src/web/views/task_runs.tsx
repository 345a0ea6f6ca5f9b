import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { AnswerOf } from '../../operations/registry.ts'
import { Refusal } from '../../core/refusal.ts'
import { ask } from '../ask.ts'
import { aboutTask, type WholeTask } from '../data/about.ts'
import { now, useAsked } from '../data/asked.ts'
import { RunBadge } from '../parts/badge.tsx'
import { Empty, Trouble } from '../parts/empty.tsx'
import { dayOf, plain, secondsSince, span } from '../parts/words.ts'

type ShownRun = AnswerOf<'run.list'>['items'][number]

const LOOK_MS = 1_000
/** What is kept of a log in the page; the whole of it: leasehold runs logs ID */
const TEXT_MAX = 400_000

export function TaskRuns({ task }: { task: WholeTask }) {
  const asked = useAsked(task.id, () => ask('run.list', { task_id: task.id, limit: 1000 }), {
    affects: aboutTask(task.id),
  })
  const chosen = useSignal<string | null>(null)
  const runs = (asked.value.value?.items ?? []).toReversed()
  const run = runs.find(({ id }) => id === chosen.value) ?? runs[0]
  if (asked.value.value && !run) {
    return (
      <Empty title="It has not been run yet" command={`leasehold task explain ${task.id}`}>
        Every attempt is listed here, with what its command printed.
      </Empty>
    )
  }
  return (
    <>
      <Trouble refusal={asked.refusal.value} />
      <ul class="runs">
        {runs.map((each) => (
          <li key={each.id}>
            <button
              type="button"
              class="run"
              aria-pressed={each.id === run?.id}
              onClick={() => (chosen.value = each.id)}
            >
              <span class="id">{each.id}</span>
              <RunBadge status={each.status} />
              <span class="dim">{sayRun(each)}</span>
            </button>
          </li>
        ))}
      </ul>
      {run && <Log key={run.id} run={run} />}
    </>
  )
}

function sayRun({ agent, started_at, ended_at, outcome }: ShownRun): string {
  const until = ended_at === null ? now.value : Date.parse(ended_at)
  const length = span(secondsSince(started_at, until))
  return `${agent}, ${dayOf(started_at)}, ${length}${outcome === null ? '' : `, ${outcome}`}`
}

function Log({ run }: { run: ShownRun }) {
  const text = useSignal('')
  const isKept = useSignal(true)
  const follows = useSignal(true)
  const refusal = useSignal<Refusal | null>(null)
  const box = useRef<HTMLPreElement>(null)
  useEffect(() => {
    const reader = new LogReader(run.id, (more, kept) => {
      isKept.value = kept
      if (more !== '') text.value = (text.value + plain(more)).slice(-TEXT_MAX)
    })
    reader.read().catch((error: unknown) => {
      if (error instanceof Refusal) refusal.value = error
    })
    return () => reader.stop()
  }, [])
  useEffect(() => {
    if (follows.value) box.current?.scrollTo({ top: box.current.scrollHeight })
  }, [text.value])
  return (
    <>
      <Trouble refusal={refusal.value} />
      <label class="check">
        <input
          type="checkbox"
          checked={follows.value}
          onChange={(event) => (follows.value = event.currentTarget.checked)}
        />
        Follow
      </label>
      <pre ref={box} class="log" tabIndex={0} aria-label={`Output of run ${run.id}`}>
        {text.value || (isKept.value ? 'No output yet.' : 'Nothing of its output is kept here.')}
      </pre>
    </>
  )
}

/** Reads on until the run has ended and all of it was read. */
class LogReader {
  private isOver = false

  constructor(
    private readonly id: string,
    private readonly take: (text: string, isKept: boolean) => void,
  ) {}

  stop(): void {
    this.isOver = true
  }

  async read(): Promise<void> {
    let after: string | null = null
    while (!this.isOver) {
      const got: AnswerOf<'run.output'> = await ask('run.output', {
        id: this.id,
        ...(after !== null && { after }),
      })
      if (this.isOver) return
      this.take(got.text, got.is_kept)
      if (got.ended_at !== null && (got.text === '' || got.next === after)) return
      after = got.next
      if (got.text === '') await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
  }
}
