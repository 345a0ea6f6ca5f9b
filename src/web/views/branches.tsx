import { useComputed } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { LANDING_STATUSES } from '../../core/landing/rows.ts'
import { WORKTREE_STATES } from '../../core/queue/rows.ts'
import { type Fits, useLandings, useWorktrees } from '../data/branches.ts'
import { changed, tasks, wantTasks } from '../data/tasks.ts'
import { LANDING_NAMES } from '../parts/badge.tsx'
import { Button } from '../parts/buttons.tsx'
import { Loading, Trouble } from '../parts/empty.tsx'
import { Page, Search, Select, Tabs } from '../parts/frame.tsx'
import { landBranch } from '../land_actions.ts'
import { adjust, param, route, wanted } from '../route.ts'
import { mayWork } from '../session.ts'
import { Landings } from './landings.tsx'
import { LandingSheet } from './landing_sheet.tsx'
import { Worktrees, WorktreeSheet } from './worktrees.tsx'

const TABS = { landings: 'Landings', worktrees: 'Worktrees' }
const tab = param<keyof typeof TABS>('tab', 'landings')
const project = param('project', '')
const state = param('state', '')

/** What is on its way to its target, in its order; and where the work of runs is kept. */
export function Branches() {
  const landings = useLandings()
  const trees = useWorktrees()
  const isLandings = tab.value === 'landings'
  const refusal = isLandings ? landings.refusal.value : trees.refusal.value
  const known = { landings: landings.value.value, worktrees: trees.value.value }
  const folders = known.worktrees?.items ?? []
  const all = [...(known.landings?.items ?? []), ...folders]
  const ids = [...new Set(all.flatMap(({ task_id }) => task_id ?? []))]
  useEffect(() => wantTasks(ids), [ids.join(' ')])
  const isShown = useComputed(() => {
    void changed.value
    return fits(wanted.value.toLowerCase(), project.value, state.value)
  }).value
  const open = route.value.params.get('id')
  return (
    <Page
      title="Branches"
      class="is-full"
      aside={
        mayWork() && (
          <Button kind="primary" act={() => landBranch({ project: project.value })}>
            Land a branch
          </Button>
        )
      }
    >
      <div class="filters">
        <Tabs
          label="Show"
          tabs={TABS}
          chosen={tab.value}
          choose={(to) => adjust({ tab: to === 'landings' ? null : to, id: null, state: null })}
        />
        <Search label="Find a task or branch" text={wanted} />
        <Select
          label="Project"
          of={[...new Set(['', project.value, ...all.map((each) => each.project).toSorted()])]}
          chosen={project.value}
          choose={(to) => (project.value = to)}
          says={(name) => name || 'All projects'}
        />
        <StateFilter isLandings={isLandings} />
      </div>
      <Trouble refusal={refusal} />
      <div class="split">
        <div class="branches">
          {!known[tab.value] && !refusal && <Loading />}
          {isLandings && known.landings && (
            <Landings listed={known.landings} trees={folders} fits={isShown} />
          )}
          {!isLandings && known.worktrees && <Worktrees listed={known.worktrees} fits={isShown} />}
        </div>
        {open !== null && isLandings && <LandingSheet key={open} id={open} trees={folders} />}
        {open !== null && !isLandings && <WorktreeSheet key={open} id={open} />}
      </div>
    </Page>
  )
}

function StateFilter({ isLandings }: { isLandings: boolean }) {
  const names: Record<string, string> = isLandings ? LANDING_NAMES : {}
  return (
    <Select
      label="State"
      of={['', ...(isLandings ? LANDING_STATUSES : WORKTREE_STATES)]}
      chosen={state.value}
      choose={(to) => (state.value = to)}
      says={(each) => (each === '' ? 'Any state' : (names[each] ?? each))}
    />
  )
}

const fits =
  (text: string, of: string, inState: string): Fits =>
  (each, is) => {
    const { id, task_id, branch } = each
    const title = tasks.get(task_id ?? '')?.title
    const said = `${id} ${task_id} ${title} ${branch}`.toLowerCase()
    const isOf = of === '' || each.project === of
    return isOf && (inState === '' || is === inState) && said.includes(text)
  }
