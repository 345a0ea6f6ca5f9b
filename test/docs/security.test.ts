import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { LIMITS } from '../../src/operations/budget.ts'
import { PROVED, SAID } from './security_proofs.ts'

/**
 * Each statement of docs/security.md has a test, which is named here: a sentence that is added, or
 * a test that goes, is red.
 */
const PAGE = readFileSync(new URL('../../docs/security.md', import.meta.url), 'utf8')

const lineOf = (text: string) => text.split(/\s+/).filter(Boolean).join(' ')

/** Paragraphs, items of lists, and rows of tables by what stands in their first column. */
function statementsIn(page: string): string[] {
  return page.split(/\n\n+/).flatMap((block) => {
    if (block.startsWith('#')) return []
    if (block.startsWith('- ')) return block.split(/\n(?=- )/).map((each) => lineOf(each.slice(2)))
    if (!block.startsWith('|')) return [lineOf(block)]
    const [, , ...rows] = block.trim().split('\n')
    return rows.map((row) => `| ${lineOf(row.split('|')[1]!)}`)
  })
}

const statements = statementsIn(PAGE)
const all = { ...PROVED, ...SAID }

test('every statement of the page names the test that would be red without it', () => {
  const begins = (each: string) => Object.keys(all).filter((start) => each.startsWith(start))
  expect(statements.filter((each) => begins(each).length !== 1)).toEqual([])
  const gone = Object.keys(all).filter(
    (start) => !statements.some((each) => each.startsWith(start)),
  )
  expect(gone).toEqual([])
})

test.each(Object.entries(PROVED))('%s', (_, proofs) => {
  for (const proof of proofs) {
    const [file, name] = proof.split(' › ')
    const text = readFileSync(new URL(`../${file}.test.ts`, import.meta.url), 'utf8')
    expect(text, proof).toMatch(/\b(?:test|it)\b/)
    expect(text, proof).toContain(name)
  }
})

test('the page has the budgets that count', () => {
  const told = (max: number) => {
    const mb = max / 1024 / 1024
    return Number.isInteger(mb) ? `${mb} MB` : max.toLocaleString('en-US')
  }
  for (const [kind, { max, all: together }] of Object.entries(LIMITS)) {
    const row = PAGE.split('\n').find((line) => line.startsWith(`| \`${kind}\``)) ?? ''
    const [, , one, everybody] = row.split('|').map((each) => each.trim())
    expect([kind, one]).toEqual([kind, told(max)])
    if (together !== Infinity) expect([kind, everybody]).toEqual([kind, told(together)])
  }
})
