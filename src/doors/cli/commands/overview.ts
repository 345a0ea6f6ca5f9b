import pc from 'picocolors'
import { STATUSES } from '../../../core/rows.ts'
import { storeExists } from '../../../stores/open.ts'
import type { Context } from '../context.ts'
import { print } from '../show/show.ts'

const COUNT_MAX = 1_000

/** What is going on here, and what one could do next. */
export async function overview(context: Context): Promise<void> {
  const { place } = context
  const counts = await context.store().read((view) => {
    const tasks = STATUSES.map((s) => [s, count(view.scan('tasks_with_status', s))] as const)
    return {
      locks: count(view.scan('leases_by_expiry', '')),
      waiters: count(view.scan('tickets', '')),
      agents: count(view.scan('agents', '')),
      tasks: Object.fromEntries(tasks),
    }
  })
  const exists = storeExists(place)
  if (context.json) {
    print(JSON.stringify({ store: place.kind, path: place.path, exists, ...counts }))
    return
  }
  const tasks = Object.entries(counts.tasks).filter(([, n]) => n > 0)
  print(
    [
      `${pc.bold('leasehold')}  ${place.kind} store at ${place.path}${exists ? '' : NOT_YET}`,
      `  tasks   ${tasks.map(([status, n]) => `${shown(n)} ${status}`).join(', ') || 'none yet'}`,
      `  locks   ${shown(counts.locks)} held, ${shown(counts.waiters)} waiting`,
      `  agents  ${shown(counts.agents)} seen`,
      '',
      ...(tasks.length === 0 ? FIRST_STEPS : NEXT_STEPS),
    ].join('\n'),
  )
}

const NOT_YET = pc.dim(' (made by the first write)')

const FIRST_STEPS = [
  'Begin:',
  '  leasehold task add "Fix the login test"     then: leasehold task claim --agent me',
  '  leasehold run --lock build -- make          one build at a time',
  '  leasehold --help                            all commands, with examples',
]

const NEXT_STEPS = [
  'Next:',
  '  leasehold task list --ready                 what can be claimed now',
  '  leasehold lock list                         who holds what, and for how long',
  '  leasehold task explain ID                   why a task is not running',
  '  leasehold doctor                            does everything work here?',
]

function count(rows: Iterable<unknown>): number {
  let n = 0
  for (const _ of rows) {
    n += 1
    if (n === COUNT_MAX) break
  }
  return n
}

const shown = (n: number) => (n === COUNT_MAX ? `${n}+` : String(n))
