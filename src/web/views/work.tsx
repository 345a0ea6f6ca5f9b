import { type Signal, useComputed, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { useCalm } from '../data/asked.ts'
import { type BriefTask, changed, findTasks, loading, tasks, wantAll } from '../data/tasks.ts'
import { Acts, Button } from '../parts/acts.tsx'
import { Empty, Page, Tabs } from '../parts/frame.tsx'
import { Filters, found, List } from '../parts/list.tsx'
import type { PageNoun } from '../parts/noun.tsx'
import { count } from '../parts/words.ts'
import { taskResource } from '../resources/task.tsx'
import { addsTask, manyAct } from '../resources/task_acts.ts'
import { opened, param, wanted } from '../route.ts'
import { mayWork } from '../session.ts'
import { isNarrow } from '../theme.ts'
import { TaskBoard } from './task_board.tsx'
import { TaskPage } from './task_page.tsx'

const WAYS = { list: 'List', board: 'Board' }
const way = param<keyof typeof WAYS>('as', 'list')
const project = param('project', '')

export function Work() {
  const id = opened()
  return id === null ? <AllTasks /> : <TaskPage key={id} id={id} />
}

function AllTasks() {
  useEffect(wantAll, [])
  const isBoard = way.value === 'board'
  // The columns of a board say what the saved filters say.
  const of = isBoard ? WITHOUT_SAVED : taskResource
  const all = useComputed(() => {
    void changed.value
    return [...tasks.values()]
  }).value
  const shown = found(of, all)
  const calm = useCalm(wanted.value)
  useEffect(() => {
    const isWhole = loading.value === 'done'
    // Nobody who answers is shown elsewhere, and what is here is searched anyway.
    if ((calm || project.value) && !isWhole) findTasks(calm, project.value).catch(() => undefined)
  }, [calm, project.value, loading.value])
  const selected = useSignal<ReadonlySet<string>>(new Set())
  const maySelect = mayWork() && !isNarrow.value
  return (
    <Page title="Work" class="is-full" aside={<Acts of={[addsTask()]} />}>
      <Filters of={of} items={all} says={loadedSays(shown.length)}>
        <Tabs label="Show as" tabs={WAYS} chosen={way.value} choose={(to) => (way.value = to)} />
        {!isBoard && maySelect && <Bulk selected={selected} shown={shown} />}
      </Filters>
      {tasks.size === 0 && loading.value === 'done' ? (
        <Empty title={of.none[0]}>{of.none[1]}</Empty>
      ) : isBoard ? (
        <TaskBoard found={shown} />
      ) : (
        <div class="panel is-list">
          <List
            of={maySelect ? withChoice(selected) : of}
            items={shown}
            label="Tasks"
            isWhole={loading.value === 'done' || loading.value === 'more'}
          />
        </div>
      )}
    </Page>
  )
}

const { saved: _, ...WITHOUT_SAVED } = taskResource

/** Tasks with a box before each, so that much can be done at once. */
function withChoice(selected: Signal<ReadonlySet<string>>): PageNoun<BriefTask> {
  const toggle = (id: string) => {
    const next = new Set(selected.value)
    if (!next.delete(id)) next.add(id)
    selected.value = next
  }
  const box: PageNoun<BriefTask>['columns'][number] = {
    name: '_',
    width: '1.2rem',
    show: ({ id }) => (
      <input
        type="checkbox"
        aria-label={`Select task ${id}`}
        checked={selected.value.has(id)}
        onChange={() => toggle(id)}
      />
    ),
  }
  return { ...taskResource, columns: [box, ...taskResource.columns] }
}

function loadedSays(n: number): string {
  if (tasks.size === 0 && loading.value !== 'done') return 'Loading…'
  const all = count(tasks.size, 'task')
  if (loading.value === 'all' || loading.value === 'some') return `${all} so far, loading…`
  if (loading.value === 'more') return `The first ${all}; a search looks through all`
  return n === tasks.size ? all : `${n.toLocaleString()} of ${all}`
}

interface BulkProps {
  selected: { value: ReadonlySet<string> }
  shown: BriefTask[]
}

function Bulk({ selected, shown }: BulkProps) {
  const ids = [...selected.value]
  const clear = () => (selected.value = new Set())
  if (ids.length === 0) {
    const all = () => (selected.value = new Set(shown.map(({ id }) => id)))
    return (
      <Button kind="quiet" disabled={shown.length === 0} act={all}>
        Select all {shown.length > 0 && shown.length.toLocaleString()}
      </Button>
    )
  }
  return (
    <>
      <strong class="number">{ids.length.toLocaleString()} selected</strong>
      <Acts of={[manyAct('retry', ids, clear), manyAct('cancel', ids, clear)]} />
      <Button kind="quiet" act={clear}>
        Select none
      </Button>
    </>
  )
}
