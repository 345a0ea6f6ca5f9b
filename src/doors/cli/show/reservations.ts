import pc from 'picocolors'
import type { ShownCheck, ShownReservation } from '../../../operations/reservations.ts'
import type { ByAnswer } from '../../../operations/registry.ts'
import { clock, pageTable, span } from './table.ts'

export const RESERVATION_PRINTERS: ByAnswer<string> = {
  'reserve.add': ({ items, warnings }) =>
    [...items.map(reservedLine), ...warnings.map((each) => `${pc.yellow('warning')} ${each}`)].join(
      '\n',
    ),
  'reserve.release': ({ items }) =>
    items.length === 0
      ? 'nothing was reserved here'
      : items.map(({ path }) => `${pc.green('released')} ${path}`).join('\n'),
  'reserve.list': (page) =>
    pageTable(page, 'Nothing is reserved. Reserve paths: leasehold reserve add "src/**"', {
      PATHS: 'path',
      HOLDER: 'holder',
      SHARED: ({ shared }) => (shared ? 'shared' : ''),
      PID: 'pid',
      'EXPIRES IN': ({ expires_in_seconds }) => span(expires_in_seconds),
      CHECKOUT: ({ checkout, project }) => checkout ?? `all of ${project ?? 'them'}`,
      REASON: 'reason',
    }),
  'reserve.ask': ({ items }) =>
    items
      .map((each) => {
        const { path, state, told } = each
        if (told && state !== 'free') return `${pc.green('asked')} ${each.holder} for ${path}`
        return `${path} is ${state === 'held' ? 'held by an agent that cannot be asked' : state}`
      })
      .join('\n'),
  'reserve.check': ({ items }) => items.map(checkLine).join('\n'),
}

function reservedLine(each: ShownReservation): string {
  const how = pc.green(each.shared ? 'sharing' : 'reserved')
  const fence = pc.bold(String(each.fence))
  const until = `until ${clock(each.expires_at)} (${span(each.expires_in_seconds)})`
  return `${how} ${each.path} for ${each.holder}, fence ${fence}, ${until}`
}

function checkLine(each: ShownCheck): string {
  if (each.state === 'free') return `${pc.green('free')}  ${each.path}`
  const { state, path, holder, reserved, expires_in_seconds, reason } = each
  const why = reason ? `: ${reason}` : ''
  const by = `${reserved}, reserved by ${holder} for ${span(expires_in_seconds)} more${why}`
  return `${state === 'mine' ? pc.green('mine') : pc.yellow('held')}  ${path}  (${by})`
}
