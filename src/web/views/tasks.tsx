import { useComputed } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { addTask } from '../actions.ts'
import { useCalm } from '../data/asked.ts'
import { type BriefTask, changed, findTasks, loading, tasks, wantAll } from '../data/tasks.ts'
import { Button } from '../parts/buttons.tsx'
import { Empty } from '../parts/empty.tsx'
import { Page, Search, Select, Tabs } from '../parts/frame.tsx'
import { count } from '../parts/words.ts'
import { param, route, wanted } from '../route.ts'
import { mayWork } from '../session.ts'
import { TaskBoard } from './task_board.tsx'
import { TaskList } from './task_list.tsx'
import { TaskPage } from './task_page.tsx'

const WAYS = { board: 'Board', list: 'List' }
const way = param<keyof typeof WAYS>('as', 'board')
const project = param('project', '')
const user = param('user', '')
const agent = param('agent', '')

export function Tasks() {
  const id = route.value.params.get('id')
  return id === null ? <AllTasks /> : <TaskPage key={id} id={id} />
}

function AllTasks() {
  useEffect(wantAll, [])
  const found = useComputed(() => {
    void changed.value
    return tasksFound()
  })
  const calm = useCalm(wanted.value)
  useEffect(() => {
    const isWhole = loading.value === 'done'
    // Nobody who answers is shown elsewhere, and what is here is searched anyway.
    if ((calm || project.value) && !isWhole) findTasks(calm, project.value).catch(() => undefined)
  }, [calm, project.value, loading.value])
  return (
    <Page
      title="Tasks"
      class="is-full"
      aside={
        mayWork() && (
          <Button kind="primary" act={() => addTask(project.value, user.value)}>
            New task
          </Button>
        )
      }
    >
      <div class="filters">
        <Tabs label="Show as" tabs={WAYS} chosen={way.value} choose={(to) => (way.value = to)} />
        <Search label="Search tasks" text={wanted} />
        <Filter label="project" chosen={project} of={(task) => task.project} />
        <Filter label="user" chosen={user} of={(task) => task.user} />
        <Filter label="agent" chosen={agent} of={(task) => task.assignee} />
        <span class="dim filters-says">{loadedSays(found.value.length)}</span>
      </div>
      {tasks.size === 0 && loading.value === 'done' ? (
        <Empty title="No task yet" command='leasehold task add "Mend the login page" --project web'>
          A task is a unit of work that one agent at a time may claim.
        </Empty>
      ) : way.value === 'list' ? (
        <TaskList found={found.value} />
      ) : (
        <TaskBoard found={found.value} />
      )}
    </Page>
  )
}

function tasksFound(): BriefTask[] {
  const text = wanted.value.toLowerCase()
  const [of, whose, by] = [project.value, user.value, agent.value]
  const isShown = (task: BriefTask) =>
    (of === '' || task.project === of) &&
    (whose === '' || task.user === whose) &&
    (by === '' || task.assignee === by) &&
    (text === '' || textOf(task).includes(text))
  return [...tasks.values()].filter(isShown)
}

const textOf = ({ id, title, project: of, user: whose, assignee, labels }: BriefTask) =>
  `${id} ${title} ${of} ${whose} ${assignee} ${labels.join(' ')}`.toLowerCase()

function loadedSays(found: number): string {
  if (tasks.size === 0 && loading.value !== 'done') return 'Loading…'
  const all = count(tasks.size, 'task')
  if (loading.value === 'all' || loading.value === 'some') return `${all} so far, loading…`
  if (loading.value === 'more') return `The first ${all}; a search looks through all`
  return found === tasks.size ? all : `${found.toLocaleString()} of ${all}`
}

interface FilterProps {
  label: string
  chosen: { value: string }
  of: (task: BriefTask) => string | null
}

/** One of the names that tasks have; what the address names is among them, known or not. */
function Filter({ label, chosen, of }: FilterProps) {
  const names = useComputed(() => {
    void changed.value
    return [...new Set([...tasks.values()].map((task) => of(task) ?? ''))].toSorted()
  }).value
  const all = [...new Set(['', chosen.value, ...names])]
  return (
    <Select
      label={label[0]!.toUpperCase() + label.slice(1)}
      of={all.slice(0, 500)}
      chosen={chosen.value}
      choose={(name) => (chosen.value = name)}
      says={(name) => name || `All ${label}s`}
    />
  )
}
