import { describe, expect, test } from 'vitest'
import type { Final } from '../../lab/rig/check_effects.ts'
import type { Recorded } from '../../lab/rig/check_fences.ts'
import { judge } from '../../lab/rig/final.ts'
import { type Call, callsOf, type Fact, type Line } from '../../lab/rig/history.ts'
import { longestClear, SERVED_MS, waitsIn } from '../../lab/rig/check_waits.ts'

/** Everything that the checkers look at. */
interface Past {
  calls: Call[]
  facts: Fact[]
  final: Final
  witness: string
}

let requests = 0

function call(who: string, op: string, asked: number, ended: number, more: Partial<Call>): Call {
  requests += 1
  const base = { request: `r${requests}`, agent: who, door: 'sdk', outcome: 'ok' as const }
  return { who, op, asked, ended, ...base, ...more }
}

function event(position: number, type: string, more: Partial<Recorded>): Recorded {
  const base = { at: '', agent: 'a', lock: null, task: null, data: {} }
  return { position, type, ...base, ...more }
}

/** A short past in which everything went well. Times in ms. */
function sound(): Past {
  const lock = { locks: ['x'], ttl_ms: 1_000 }
  const task = { locks: ['task:1'], task: '1' }
  const calls = [
    call('a', 'lock.acquire', 0, 10, { ...lock, fences: [1] }),
    call('b', 'lock.acquire', 5, 320, { ...lock, fences: [3], wait_ms: 2_000 }),
    call('a', 'lock.renew', 100, 110, { ...lock, fence: 1 }),
    call('a', 'lock.release', 300, 310, { ...lock, fence: 1 }),
    call('c', 'task.create', 20, 30, { mark: 'paint', task: '1' }),
    call('c', 'task.claim', 40, 50, { ...task, fences: [2], ttl_ms: 1_000 }),
    call('c', 'task.status', 60, 70, { ...task, fence: 2 }),
    call('c', 'memory.put', 80, 90, { mark: 'note-1' }),
    call('d', 'task.update', 100, 110, { value: 1 }),
    call('e', 'task.update', 120, 130, { value: 2 }),
    call('b', 'lock.renew', 330, 340, { ...lock, fence: 3 }),
    call('b', 'lock.release', 400, 410, { ...lock, fence: 3 }),
    call('a', 'lock.renew', 500, 510, {
      ...lock,
      fence: 1,
      outcome: 'refused',
      code: 'fence_stale',
    }),
    call('d', 'lock.acquire', 600, 610, { locks: ['pair0:a', 'pair0:b'], fences: [4, 5] }),
  ]
  const events = [
    event(1, 'lease.granted', { lock: 'x', data: { fence: 1 } }),
    event(2, 'task.created', { task: '1' }),
    event(3, 'task.claimed', { lock: 'task:1', task: '1', data: { fence: 2 } }),
    event(4, 'task.moved', { lock: 'task:1', task: '1', data: { fence: 2, to: 'done' } }),
    event(5, 'lease.released', { lock: 'x', data: { fence: 1 } }),
    event(6, 'lease.granted', { lock: 'x', agent: 'b', data: { fence: 3 } }),
    event(7, 'lease.released', { lock: 'x', agent: 'b', data: { fence: 3 } }),
    event(8, 'lease.granted', { lock: 'pair0:a', agent: 'd', data: { fence: 4 } }),
    event(9, 'lease.granted', { lock: 'pair0:b', agent: 'd', data: { fence: 5 } }),
  ]
  const tasks = [
    { id: '1', title: 'paint', status: 'done', attempts: 1, body: '' },
    { id: 'counter', title: 'counter', status: 'todo', attempts: 0, body: '2' },
  ]
  const witness = ['begin ada q1.1 6 10:1', 'end ada q1.1 6 10:1', 'begin ada q2.1 7 11:1'].join(
    '\n',
  )
  return { calls, facts: [], final: { events, tasks, notes: ['note-1'], problems: [] }, witness }
}

const judged = ({ calls, facts, final, witness }: Past) => judge(calls, facts, final, witness)

const find = (past: Past, op: string, who: string) =>
  past.calls.find((each) => each.op === op && each.who === who)!

/** Each makes one thing wrong, and names the check that must see it. */
const MUTATIONS: Record<string, [check: string, mutate: (past: Past) => void]> = {
  'a fence that does not rise': [
    'fences rise',
    (past) => {
      find(past, 'lock.acquire', 'd').fences = [4, 2.5]
    },
  ],
  'a fence that is given twice': [
    'fences rise',
    (past) => {
      find(past, 'lock.acquire', 'd').fences = [4, 3]
    },
  ],
  'a stale write that is accepted': [
    'stale writes are refused',
    (past) => {
      Object.assign(past.calls.at(-2)!, { outcome: 'ok' })
    },
  ],
  'a release of another lease that is accepted': [
    'stale writes are refused',
    (past) => {
      find(past, 'lock.release', 'b').fence = 1
    },
  ],
  'a lock that is given while its lease lives': [
    'nobody is robbed',
    (past) => {
      Object.assign(find(past, 'lock.acquire', 'b'), { ended: 200 })
      find(past, 'lock.release', 'a').op = 'lock.renew'
    },
  ],
  'a holder of no process that is robbed at its death': [
    'nobody is robbed',
    (past) => {
      past.calls = past.calls.filter(({ op }) => op !== 'lock.release')
      past.facts.push({ t: 150, fact: 'killed', who: 'a', role: 'sdk' })
    },
  ],
  'half of a pair': [
    'all or nothing',
    (past) => {
      past.final.events.pop()
      past.final.events.push(event(9, 'queue.paused', {}))
    },
  ],
  'an event that is missing': [
    'events have no gaps',
    (past) => {
      past.final.events.splice(3, 1)
    },
  ],
  'an event that is there twice': [
    'events have no gaps',
    (past) => {
      past.final.events.push(past.final.events[2]!)
    },
  ],
  'a task that is lost': [
    'no task lost, invented or ended twice',
    (past) => {
      past.final.tasks = past.final.tasks.filter(({ id }) => id !== '1')
    },
  ],
  'a task under another id': [
    'no task lost, invented or ended twice',
    (past) => {
      past.final.tasks[0]!.id = '2'
    },
  ],
  'a task that nobody asked for': [
    'no task lost, invented or ended twice',
    (past) => {
      past.final.tasks.push({ id: '9', title: 'ghost', status: 'todo', attempts: 0, body: '' })
    },
  ],
  'a task that is there twice': [
    'no task lost, invented or ended twice',
    (past) => {
      past.final.tasks.push({ ...past.final.tasks[0]!, id: '9' })
    },
  ],
  'a task that is no longer done': [
    'no task lost, invented or ended twice',
    (past) => {
      past.final.tasks[0]!.status = 'todo'
    },
  ],
  'a task that was ended twice': [
    'no task lost, invented or ended twice',
    (past) => {
      past.final.events.push({ ...past.final.events[3]!, position: 10 })
    },
  ],
  'a queued task that is done by nobody': [
    'no task lost, invented or ended twice',
    (past) => {
      past.calls.push(call('q', 'queue.add', 1, 2, { mark: 'queued 2', task: 'q2' }))
      past.final.tasks.push({ id: 'q2', title: 'queued 2', status: 'done', attempts: 1, body: '' })
    },
  ],
  'a request id with two answers': [
    'one effect per request id',
    (past) => {
      const made = find(past, 'task.create', 'c')
      past.calls.push({ ...made, asked: 700, ended: 710, task: '2' })
    },
  ],
  'a grant that left no trace': [
    'nothing acknowledged is lost',
    (past) => {
      past.final.events[5]!.data['fence'] = 99
    },
  ],
  'a release that left no trace': [
    'nothing acknowledged is lost',
    (past) => {
      past.final.events[4]!.type = 'lease.expired'
    },
  ],
  'a note that is lost': [
    'nothing acknowledged is lost',
    (past) => {
      past.final.notes = []
    },
  ],
  'an addition that was overwritten': [
    'no update is lost',
    (past) => {
      past.final.tasks[1]!.body = '1'
    },
  ],
  'two additions that got one number': [
    'no update is lost',
    (past) => {
      find(past, 'task.update', 'e').value = 1
    },
  ],
  'an addition out of nowhere': [
    'no update is lost',
    (past) => {
      past.final.tasks[1]!.body = '3'
    },
  ],
  'two commands of one user at once': [
    'limits are never exceeded',
    (past) => {
      past.witness += ' 10:1'
    },
  ],
  'a command that began twice': [
    'one start per fence',
    (past) => {
      past.witness += '\nbegin ada q2.1 7 12:1'
    },
  ],
  'a command under an older fence': [
    'fences rise',
    (past) => {
      past.witness += '\nbegin ada q3.1 5 12:1'
    },
  ],
  'a free lock that nobody gets': [
    'the head of a line is served',
    (past) => {
      Object.assign(find(past, 'lock.acquire', 'b'), { ended: 310 + SERVED_MS + 1 })
    },
  ],
  'a wait that timed out although the lock was free': [
    'the head of a line is served',
    (past) => {
      const waited = { outcome: 'refused', code: 'held', ended: 5_000, fences: [] } as const
      Object.assign(find(past, 'lock.acquire', 'b'), waited)
      past.calls = past.calls.filter(({ who, op }) => who !== 'b' || op === 'lock.acquire')
    },
  ],
  'a refusal that says it is a bug': [
    'answers are those of the contract',
    (past) => {
      past.calls.at(-2)!.code = 'internal'
    },
  ],
  'a store that does not hold together': [
    'db check',
    (past) => {
      past.final.problems.push('the chain is broken')
    },
  ],
}

describe('the checkers of the rig', () => {
  test('find nothing wrong with a sound past', () => {
    expect(judged(sound())).toEqual([])
  })

  for (const [name, [check, mutate]] of Object.entries(MUTATIONS)) {
    test(`see ${name}`, () => {
      const past = sound()
      mutate(past)
      expect(judged(past).map((found) => found.check)).toContain(check)
    })
  }

  test('take a named process that died for the end of its lease', () => {
    const past = sound()
    past.calls = past.calls.filter(({ op, who }) => op !== 'lock.release' || who !== 'a')
    find(past, 'lock.acquire', 'a').named = true
    past.facts.push({ t: 150, fact: 'killed', who: 'a', role: 'sdk' })
    const checks = judged(past).map(({ check }) => check)
    expect(checks).not.toContain('nobody is robbed')
  })

  test('take a new grant to the same agent for the end of its lease', () => {
    const past = sound()
    const lock = { locks: ['z'], ttl_ms: 5_000 }
    past.calls.push(
      call('a', 'lock.acquire', 700, 710, { ...lock, fences: [6] }),
      call('a', 'lock.acquire', 800, 810, { ...lock, fences: [7] }),
      call('a', 'lock.release', 820, 830, { ...lock, fence: 7 }),
      call('b', 'lock.acquire', 840, 850, { ...lock, fences: [8] }),
    )
    const robbed = () => judged(past).filter(({ check }) => check === 'nobody is robbed')
    expect(robbed()).toEqual([])
    past.calls.splice(-3, 2)
    expect(robbed()).toHaveLength(1)
  })

  test('blame nobody for a wait while everything was down', () => {
    const past = sound()
    Object.assign(find(past, 'lock.acquire', 'b'), { ended: 4_000 })
    past.facts.push({ t: 320, fact: 'down', what: 'daemon' })
    past.facts.push({ t: 3_500, fact: 'up', what: 'daemon' })
    expect(judged(past)).toEqual([])
    expect(waitsIn(past.calls, past.facts).map(({ ms }) => ms)).toEqual([500])
  })

  test('measure the longest time that nothing covers', () => {
    expect(longestClear(0, 100, [])).toBe(100)
    expect(
      longestClear(0, 100, [
        [10, 20],
        [15, 60],
      ]),
    ).toBe(40)
    expect(
      longestClear(0, 100, [
        [-5, 50],
        [50, 200],
      ]),
    ).toBe(0)
  })

  test('read a history whose last line was cut off', () => {
    const ask = { t: 1, at: 'ask', n: 1, op: 'lock.acquire', request: 'r', agent: 'a', door: 'sdk' }
    const lines: Line[] = [ask as Line]
    expect(callsOf('a.1', lines)).toMatchObject([{ outcome: 'unknown', ended: undefined }])
    lines.push({ t: 2, at: 'end', n: 1, outcome: 'ok', fences: [7] })
    expect(callsOf('a.1', lines)).toMatchObject([{ outcome: 'ok', ended: 2, fences: [7] }])
  })
})
