import type { Player } from './parity_player.ts'

// With the name of a machine: where machines share a store, a path alone is given one.
const REPO = { checkout: 'box:/srv/größe repo', project: 'web' }

/** Reservations of paths. Who names a checkout is taken at its word, on every door. */
export async function paths(p: Player): Promise<void> {
  await additions(p)
  await looks(p)
  await touches(p)
  await releases(p)
}

async function additions(p: Player): Promise<void> {
  await p.ask('reserve.add', 'ada', { ...REPO, paths: ['src/**', 'docs/*.md'], reason: 'grammar' })
  await p.ask('reserve.add', 'ada', { ...REPO, paths: ['./src//'], ttl_seconds: 120.5 })
  await p.ask('reserve.add', 'bob', { ...REPO, paths: ['free/a', 'src/*/x'] })
  await p.ask('reserve.add', 'bob', { ...REPO, paths: ['src/**'], checkout: 'box:/elsewhere' })
  await p.ask('reserve.add', 'bob', { ...REPO, paths: ['shared/'], shared: true })
  await p.ask('reserve.add', 'cy', { ...REPO, paths: ['shared/[a-c]*'], shared: true })
  await p.ask('reserve.add', 'cy', { ...REPO, paths: ['shared/b'] })
  for (const glob of ['{a}', 'a/../b', '/etc', '@(a)', 'a**']) {
    await p.ask('reserve.add', 'ada', { ...REPO, paths: [glob] })
  }
  await p.ask('reserve.add', 'ada', { ...REPO, paths: ['{a,b}'.repeat(7)] })
  const once = { ...REPO, paths: ['once'], request_id: 'paths' }
  const { items } = await p.ask('reserve.add', 'ada', once)
  await p.ask('reserve.add', 'ada', once)
  await p.ask('lock.status', 'bob', { name: 'path:box:/srv/größe repo:once' })
  await p.ask('lock.hand_off', 'ada', { name: 'path:box:/srv/größe repo:once', to: 'bob' })
  await p.ask('reserve.release', 'ada', { ...REPO, paths: ['once'], fence: items[0].fence })
  await p.ask('reserve.add', 'ada', once)
}

async function looks(p: Player): Promise<void> {
  await p.ask('reserve.list', 'cy', { project: 'web' })
  const page = await p.ask('reserve.list', 'cy', { checkout: REPO.checkout, limit: 2 })
  await p.ask('reserve.list', 'cy', { checkout: REPO.checkout, limit: 2, after: page.next })
  await p.ask('reserve.list', 'cy')
  await p.ask('reserve.list', 'cy', { after: 'nonsense' })
  await p.ask('reserve.check', 'bob', { ...REPO, paths: ['src/a', 'shared/b', 'free/a', 'docs/'] })
  await p.ask('reserve.check', 'ada', { ...REPO, paths: ['app/[id].ts'] })
  await p.ask('reserve.check', 'bob', { ...REPO, paths: ['../up'] })
  await p.ask('reserve.check', 'bob', { ...REPO, paths: ['x'.repeat(1025)] })
}

/**
 * By agents that hold nothing else: a touch renews what they hold, if that was some time ago, and
 * on a slow door it was.
 */
async function touches(p: Player): Promise<void> {
  const auto = { ...REPO, mode: 'auto' }
  await p.ask('reserve.touch', 'dot', { ...auto, paths: ['app/[id].ts', 'lib/x'] })
  await p.ask('reserve.touch', 'dot', { ...auto, paths: [] })
  await p.ask('reserve.touch', 'eli', { ...auto, paths: ['free/b', 'lib/x'] })
  await p.ask('reserve.touch', 'eli', { ...auto, paths: ['free/b'], mode: 'strict' })
  await p.ask('reserve.touch', 'eli', { ...auto, paths: ['lib/x'], mode: 'warn' })
  await p.ask('reserve.touch', 'eli', { ...auto, paths: ['/etc/passwd'] })
  await p.ask('reserve.touch', 'eli', { ...auto, paths: ['x'.repeat(1025)] })
  const asked = { ...REPO, paths: ['lib/x', 'free/c'], reason: 'the fix waits for it' }
  await p.ask('reserve.ask', 'eli', asked)
  await p.ask('reserve.ask', 'eli', { ...asked, reason: 'x'.repeat(101) })
  await p.ask('reserve.ask', 'eli', { ...asked, paths: ['../up'] })
  await p.ask('reserve.touch', 'dot', { ...auto, paths: [], hears: true })
  await p.ask('hook.notice', 'eli', { ...REPO, paths: ['lib/x', 'free/b', 'free/c'] })
  await p.ask('hook.notice', 'eli', { ...REPO, paths: ['x'.repeat(1025)] })
  await p.ask('hook.notice', 'eli', { ...REPO, paths: ['../up'] })
  await p.ask('hook.restore', 'eli', { ...REPO, paths: ['lib/x'] })
  await p.ask('hook.restore', 'eli', { ...REPO, paths: ['free/b'] })
  await p.ask('hook.restore', 'eli', { ...REPO, paths: ['../up'] })
  await p.ask('hook.restore', 'eli', { ...REPO, paths: ['x'.repeat(1025)] })
  const past = { reason: 'hotfix', paths: ['lib/x'], refusal: 'lib/x is reserved by dot' }
  await p.ask('hook.bypass', 'eli', { ...past, request_id: 'past' })
  await p.ask('hook.bypass', 'eli', { ...past, request_id: 'past' })
  await p.ask('hook.bypass', 'eli', { ...past, paths: [] })
  await p.ask('hook.bypass', 'eli', { ...past, reason: 'x'.repeat(501) })
}

async function releases(p: Player): Promise<void> {
  await p.ask('reserve.release', 'bob', { ...REPO, paths: ['src/**'] })
  await p.ask('reserve.release', 'ada', { ...REPO, paths: ['src/*'] })
  await p.ask('reserve.release', 'ada', { ...REPO, paths: ['src/**'], fence: 999_999 })
  await p.ask('reserve.release', 'ada', { ...REPO, paths: ['src/**', 'docs/*.md'], fence: 1 })
  await p.ask('reserve.release', 'ada', { ...REPO, paths: ['[z-a]'] })
  await p.ask('reserve.release', 'ada', { ...REPO, paths: ['{a,b}'.repeat(7)] })
  await p.ask('reserve.release', 'ada', { ...REPO, paths: ['docs/*.md'] })
  await p.ask('reserve.release', 'ada', REPO)
  await p.ask('reserve.release', 'ada', REPO)
}
