import type { DispatcherRow } from '../schema/queue.ts'
import { taskOf, timesOf } from '../locks/lease.ts'
import { limitOf, POOL } from './limit.ts'
import { SLOTS_DEFAULT } from '../bounds.ts'
import { nameOfHost } from './rows.ts'
import { busyUsers, maxOf, queueOf, shareOf, userOf } from './share.ts'
import { slotsUsed } from './dispatch.ts'
import { liveLease } from '../locks/standing.ts'
import type { View } from '../view.ts'

/** Dispatchers that are at work now. */
export function liveDispatchers(view: View): DispatcherRow[] {
  return [...view.scan('dispatchers', '')].filter(({ id }) => liveLease(view, id) !== undefined)
}

/** The places for runs, by dispatcher and in all. */
export function slotsOf(view: View) {
  const dispatchers = liveDispatchers(view).map((each) => {
    const { id, pid, slots_max, projects } = each
    const host = nameOfHost(each.host)
    return { id, host, pid, slots_max, slots_used: slotsUsed(view, id), projects }
  })
  const sum = (pick: (each: (typeof dispatchers)[number]) => number) =>
    dispatchers.reduce((total, each) => total + pick(each), 0)
  const slots_max = dispatchers.length === 0 ? SLOTS_DEFAULT : sum((each) => each.slots_max)
  return { dispatchers, slots_used: sum((each) => each.slots_used), slots_max }
}

/** What waits, what runs, and who is busy: the queue at a glance. */
export function queueStatus(view: View) {
  const { dispatchers, slots_used, slots_max } = slotsOf(view)
  const busy = busyUsers(view)
  const pool = limitOf(view, POOL)
  return {
    paused: queueOf(view).paused,
    ...pausedOf(view),
    pending: pendingOf(view),
    active: {
      slots_used,
      slots_max,
      slots_available: Math.max(0, slots_max - slots_used),
      by_project: activeProjects(view),
      by_user: Object.fromEntries([...busy].map(([user, locks]) => [user, locks.length])),
    },
    pool: { used: pool.used, max: pool.max },
    user_locks: userLocks(view, busy),
    dispatchers,
  }
}

/** The same with what bounds it: users with their weights, and the limits that are set or used. */
export function wholeStatus(view: View) {
  const status = queueStatus(view)
  return { ...status, shares: sharesOf(view, status), limits: limitsOf(view) }
}

export type QueueStatus = ReturnType<typeof wholeStatus>

/**
 * Users with tasks that wait or run, those with the most tasks first. What is fair is shared among
 * these: who wants nothing now takes nothing from them.
 */
function sharesOf(view: View, { pending, active }: ReturnType<typeof queueStatus>) {
  const users = new Set([...Object.keys(pending.by_user), ...Object.keys(active.by_user)])
  const found = [...users].map((user) => shareOf(view, user))
  const weights = found.reduce((sum, { weight }) => sum + weight, 0)
  const shares = found.map((share) => {
    const { user, weight, paused } = share
    const fair_share = weight / weights
    const running = active.by_user[user] ?? 0
    const waiting = pending.by_user[user] ?? 0
    return { user, weight, max: maxOf(view, share), running, pending: waiting, paused, fair_share }
  })
  return shares.toSorted((a, b) => b.running + b.pending - a.running - a.pending)
}

/** Limits of projects and groups; those of users are with their shares. */
function limitsOf(view: View) {
  return [...view.scan('limits', '')].flatMap(({ key, max, used, paused }) => {
    const [, kind, name] = /^(project|group):(.*)$/s.exec(key) ?? []
    if (name === undefined || (max === null && used === 0 && !paused)) return []
    const project = kind === 'project' ? name : null
    return [{ project, group: kind === 'group' ? name : null, max, used, paused }]
  })
}

/** Tasks that wait in the queue, by user and priority. */
export function pendingOf(view: View) {
  const shares = [...view.scan('shares_waiting', '')]
  const high = shares.reduce((sum, share) => sum + share.pending_high, 0)
  const total = shares.reduce((sum, share) => sum + share.pending, 0)
  // Not by assignment: a user may be called __proto__.
  const by_user = Object.fromEntries(shares.map(({ user, pending }) => [user, pending]))
  return { high, normal: total - high, total, by_user }
}

/** Projects that are paused, and users who wait because they are. */
function pausedOf(view: View) {
  const limits = [...view.scan('limits', '')].filter(({ paused }) => paused)
  const projects = limits.filter(({ key }) => key.startsWith('project:'))
  const users = [...view.scan('shares_waiting', '')].filter(({ paused }) => paused)
  return {
    paused_projects: projects.map(({ key }) => key.slice(8)),
    paused_users: users.map(({ user }) => user),
  }
}

function activeProjects(view: View): Record<string, number> {
  const used = [...view.scan('limits', '')].filter((limit) => limit.used > 0)
  const projects = used.filter(({ key }) => key.startsWith('project:'))
  return Object.fromEntries(projects.map((limit) => [limit.key.slice(8), limit.used]))
}

/** What keeps users busy, shown as locks of theirs: no claim is one where nothing bounds a user. */
function userLocks(view: View, busy: Map<string, string[]>) {
  const details = [...busy].flatMap(([user, locks]) => {
    const isBounded = maxOf(view, shareOf(view, user)) !== null
    const shown = locks.filter((name) => isBounded || userOf(name) === user)
    return shown.map((name) => {
      const lease = view.get('lease', name)
      return {
        user,
        lock_id: `user:${user}#${lease?.fence ?? 0}`,
        task_id: taskOf(name) ?? null,
        acquired_at: lease?.acquired_at ?? null,
        acquired_by_pid: lease?.group?.pid ?? lease?.process?.pid ?? null,
        expires_at: lease ? timesOf(view, lease).expires_at : null,
      }
    })
  })
  return { active: details.length, details }
}
