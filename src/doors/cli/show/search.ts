import pc from 'picocolors'
import type { AnswerOf, ByAnswer } from '../../../operations/registry.ts'
import { moreOf, span, table } from './table.ts'

/** How what was found in shared memory is shown to a person. What notes say is spelled out. */
export const SEARCH_PRINTERS: ByAnswer<string> = {
  'memory.search': ({ items, modes, why }) =>
    [
      ...items.map((item) => `${headOf(item)}\n  ${oneLine(item.excerpt)}`),
      ...(items.length === 0 ? [pc.dim('No note fits. Try other words, or fewer filters.')] : []),
      usedLine(modes, why),
    ].join('\n'),
  'memory.context': ({ items, tokens, modes, why }) =>
    [
      ...items.map((item) => `${headOf(item)}\n${item.content}${item.cut ? ' …' : ''}\n`),
      pc.dim(`${items.length} notes, about ${tokens} tokens`),
      usedLine(modes, why),
    ].join('\n'),
  'memory.status': statusLines,
  'memory.retry': ({ retried }) => `${pc.green('retrying')} ${retried}`,
  'duplicate.list': ({ items, next }) =>
    table(
      ['ID', 'ALIKE', 'LABEL', 'A', 'SAYS', 'B', 'SAYS'],
      items.map(({ id, similarity, label, a, b }) => [
        id,
        similarity.toFixed(2),
        label ?? '',
        ...[a, b].flatMap((side) => [
          side ? `${side.scope} ${side.key}` : '(gone)',
          oneLine(side?.excerpt ?? '').slice(0, 60),
        ]),
      ]),
      'No two notes say the same, as far as is known.',
    ) + moreOf(next),
  'duplicate.resolve': ({ id, action }) => `${pc.green('settled')} ${id}: ${action}`,
}

const oneLine = (text: string) => text.replaceAll(/\s+/g, ' ').trim()

type Labelled = AnswerOf<'memory.context' | 'memory.search'>['items'][number]

function headOf({ scope, key, author, age_seconds, confidence, disputed }: Labelled): string {
  const facts = [
    `by ${author}, ${span(age_seconds)} ago`,
    confidence !== null && `confidence ${confidence}`,
    disputed && pc.red('disputed'),
  ]
  const name = pc.bold(key)
  return `${name}  ${pc.dim(`${scope}  ${facts.filter(Boolean).join(', ')}`)}`
}

const usedLine = (modes: string[], why: string | undefined) =>
  pc.dim(`looked by ${modes.join(' and ')}${why === undefined ? '' : `; ${why}`}`)

function statusLines(status: AnswerOf<'memory.status'>): string {
  const { notes, embedded, provider, waiting, put_aside, problems } = status
  const share = notes === 0 ? '' : ` (${Math.floor((100 * embedded) / notes)} %)`
  return [
    `${notes} notes, ${embedded} embedded${share} by ${provider ?? 'nobody yet'}`,
    `${waiting} background jobs to do, ${put_aside} put aside`,
    ...(waiting > 0 ? [pc.dim('a running server does them: leasehold up')] : []),
    ...problems.map(({ kind, subject, attempts, error }) =>
      pc.yellow(`  ${kind} ${subject}: ${error ?? ''} (${attempts} times)`),
    ),
    ...(put_aside > 0 ? [pc.dim('try again: leasehold memory retry --force')] : []),
  ].join('\n')
}
