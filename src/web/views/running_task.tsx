import { ask } from '../ask.ts'
import { now, useAsked } from '../data/asked.ts'
import { locks, locksChanged, watch } from '../data/locks.ts'
import type { BriefTask } from '../data/tasks.ts'
import { Tag } from '../parts/badge.tsx'
import { Countdown } from '../parts/countdown.tsx'
import { Terminal } from '../parts/terminal.ts'
import { secondsSince, span } from '../parts/words.ts'
import { hrefOf } from '../route.ts'
import { ReleaseButton } from './release_button.tsx'

const GLANCE_MS = 2_000
const GLANCE_BYTES = 600

export function RunningTask({ task }: { task: BriefTask }) {
  void locksChanged.value
  const name = `task:${task.id}`
  const lock = locks.get(name)
  watch([name])
  return (
    <li class="row running">
      <div class="running-what">
        <a href={hrefOf('tasks', { id: task.id })}>
          <span class="id">{task.id}</span> {task.title}
        </a>
        <span class="dim">
          {task.assignee}
          {task.project && <Tag>{task.project}</Tag>}
          {task.user && <Tag>{task.user}</Tag>}
        </span>
        {task.queue && <LastLine run={`${task.id}.${task.attempts}`} />}
      </div>
      <div class="running-time">
        {task.assigned_at && (
          <span class="number" title={`since ${task.assigned_at}`}>
            {span(secondsSince(task.assigned_at, now.value))}
          </span>
        )}
        {lock && <Countdown until_ms={lock.until_ms} ttl_seconds={lock.ttl_seconds} />}
      </div>
      {lock && <ReleaseButton name={name} holder={lock.holder} />}
    </li>
  )
}

/** What its command said last, as far as it is kept on the machine of the server. */
function LastLine({ run }: { run: string }) {
  const output = useAsked(run, () => ask('run.output', { id: run, bytes: GLANCE_BYTES }), {
    every_ms: GLANCE_MS,
  })
  const text = lastLine(output.value.value?.text ?? '')
  return <code class="last-line">{text || 'no output yet'}</code>
}

function lastLine(text: string): string {
  const terminal = new Terminal()
  terminal.write(text)
  for (let i = terminal.length - 1; i >= 0; i -= 1) {
    if (terminal.text(i).trim() !== '') return terminal.text(i)
  }
  return ''
}
