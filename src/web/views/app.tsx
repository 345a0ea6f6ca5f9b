import { useEffect } from 'preact/hooks'
import { connection } from '../data/live.ts'
import { health, needed } from '../data/stuck.ts'
import { Help, helpOpen } from '../keys.tsx'
import { ConfirmDialog, IconButton, toast, Toasts } from '../parts/acts.tsx'
import { Icon } from '../parts/icon.tsx'
import { hrefOf, route, type ViewName, VIEWS } from '../route.ts'
import { signOut, who } from '../session.ts'
import { theme, toggleTheme } from '../theme.ts'
import { History } from './history.tsx'
import { Knowledge } from './knowledge.tsx'
import { Now } from './now.tsx'
import { Settings } from './settings.tsx'
import { SignIn } from './sign_in.tsx'
import { Who } from './who.tsx'
import { Work } from './work.tsx'

const PAGES: Record<ViewName, { title: string; Show: () => preact.JSX.Element }> = {
  now: { title: 'Now', Show: Now },
  work: { title: 'Work', Show: Work },
  who: { title: 'Who has what', Show: Who },
  history: { title: 'History', Show: History },
  knowledge: { title: 'Knowledge', Show: Knowledge },
  settings: { title: 'Settings', Show: Settings },
}

export function App() {
  if (who.value === undefined) return <p class="loading">Signing in…</p>
  if (who.value === null) return <SignIn />
  const { view } = route.value
  const { title, Show } = PAGES[view]
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={skipToMain}>
        Skip to content
      </a>
      <Menu view={view} />
      <main id="main" class="main" tabIndex={-1}>
        <PageTitle title={title} />
        <Away />
        <Show key={view} />
      </main>
      <ConfirmDialog />
      {helpOpen.value && <Help />}
      <Toasts />
    </div>
  )
}

/** The part behind the # says which view is shown, so a plain link into the page would leave it. */
function skipToMain(event: Event): void {
  event.preventDefault()
  document.querySelector<HTMLElement>('#main')?.focus()
}

const HEALTH_NAMES = {
  ok: 'Healthy',
  degraded: 'Degraded',
  paused: 'Paused',
  silent: 'Silent',
  lost: 'No answer',
  unknown: 'Looking…',
}

/** How things stand is said in the tab too: it is seen while another page is looked at. */
function PageTitle({ title }: { title: string }) {
  const { state } = health.value
  const isFine = state === 'ok' || state === 'unknown'
  const whole = `${isFine ? '' : `${HEALTH_NAMES[state]} · `}${title} · Leasehold`
  useEffect(() => {
    document.title = whole
  }, [whole])
  return null
}

function Menu({ view }: { view: ViewName }) {
  useEffect(() => {
    // On a phone the menu is wider than the screen.
    const link = document.querySelector<HTMLElement>('.menu [aria-current]')
    link?.parentElement!.scrollTo({ left: link.offsetLeft - link.parentElement!.clientWidth / 2 })
  }, [view])
  return (
    <header class="menu">
      <a class="brand" href="#/now" aria-label="Leasehold">
        <img src="/favicon.svg" width="24" height="24" alt="" />
        <span>Leasehold</span>
      </a>
      <nav aria-label="Views">
        {VIEWS.map((each) => (
          <a key={each} href={hrefOf(each)} aria-current={each === view ? 'page' : undefined}>
            <Icon name={each} />
            <span>{PAGES[each].title}</span>
            {each === 'now' && <Needed />}
          </a>
        ))}
      </nav>
      <Standing />
    </header>
  )
}

function Needed() {
  const n = needed.value.length
  if (n === 0) return null
  return (
    <span class="needed number" title={`${n} ${n === 1 ? 'needs' : 'need'} a person`}>
      {n}
    </span>
  )
}

function Standing() {
  const { role, agent } = who.value!
  const dark = theme() === 'dark'
  return (
    <div class="standing">
      <Health />
      <span class="who" title={`Signed in as ${agent}`}>
        {role}
      </span>
      <IconButton
        icon={dark ? 'sun' : 'moon'}
        label={dark ? 'Light colours' : 'Dark colours'}
        act={toggleTheme}
      />
      <IconButton icon="help" label="Keyboard help" act={() => (helpOpen.value = true)} />
      <IconButton icon="out" label="Sign out" act={() => void signOut()} />
    </div>
  )
}

const CONNECTIONS = {
  connecting: 'Connecting…',
  live: 'Live',
  silent: 'Nothing heard',
  lost: 'Reconnecting…',
}

function Health() {
  const { state, why } = health.value
  return (
    <p class="health">
      <a class={`health-state is-${state}`} href="#/now" title={why}>
        {HEALTH_NAMES[state]}
      </a>
      <span class={`connection is-${connection.value}`} role="status">
        {CONNECTIONS[connection.value]}
      </span>
    </p>
  )
}

const NEXT = {
  lost: 'What you see is from before; this page connects by itself as soon as it is back.',
  silent: 'What you see is from before; what you do now waits for it.',
}

/** That the page is not told what happens; and when it is again, that nothing was missed. */
function Away() {
  const { state, why } = health.value
  const isLost = state === 'lost'
  useEffect(() => {
    if (!isLost) return undefined
    return () => toast('Connected again: nothing was missed')
  }, [isLost])
  if (!isLost && state !== 'silent') return null
  return (
    <div class="banner" role="alert">
      <Icon name="lost" /> {why}. {NEXT[state]}
    </div>
  )
}
