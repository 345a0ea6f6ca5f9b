import { effect } from '@preact/signals'
import { render } from 'preact'
import { keepFollowing } from './data/live.ts'
import { loadLocks } from './data/locks.ts'
import { loadTasks } from './data/tasks.ts'
import { begin, who } from './session.ts'
import { App } from './views/app.tsx'

render(<App />, document.querySelector('#app')!)
void begin()

let isFollowing = false
effect(() => {
  if (!who.value || isFollowing) return
  isFollowing = true
  // The stream first: what happens while we load is not missed.
  void keepFollowing().finally(() => (isFollowing = false))
  loadTasks()
  loadLocks()
})
