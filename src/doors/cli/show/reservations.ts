import pc from 'picocolors'
import type { ShownCheck, ShownReservation } from '../../../operations/reservations.ts'
import type { ByAnswer } from '../../../operations/registry.ts'
import { clock, span, table } from './table.ts'

export const RESERVATION_PRINTERS: ByAnswer<string> = {
  'reserve.add': ({ items, warnings }) =>
    [...items.map(reservedLine), ...warnings.map((each) => `${pc.yellow('warning')} ${each}`)].join(
      '\n',
    ),
  'reserve.release': ({ items }) =>
    items.length === 0
      ? 'nothing was reserved here'
      : items.map(({ path }) => `${pc.green('released')} ${path}`).join('\n'),
  'reserve.list': ({ items, next }) =>
    table(
      ['PATHS', 'HOLDER', 'SHARED', 'PID', 'EXPIRES IN', 'CHECKOUT', 'REASON'],
      items.map((each) => [
        each.path,
        each.holder,
        each.shared ? 'shared' : '',
        'pid' in each ? String(each.pid) : '',
        span(each.expires_in_seconds),
        each.checkout ?? `all of ${each.project ?? 'them'}`,
        each.reason ?? '',
      ]),
      'Nothing is reserved. Reserve paths: leasehold reserve add "src/**"',
    ) + (next ? pc.dim(`\nmore: --after ${next}`) : ''),
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
