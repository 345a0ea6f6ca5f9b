import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { readTool } from '../../src/hooks/tools.ts'
import * as tables from './tool_inputs.ts'

const { REASONS, ...inputs } = tables
const PAGE = readFileSync(new URL('../../docs/hooks.md', import.meta.url), 'utf8')

describe.each(Object.entries(inputs))('%s', (_, rows) => {
  test.each(rows.map((row) => ({ ...row, shown: JSON.stringify(row.input).slice(0, 60) })))(
    '$tool $shown',
    ({ tool, input, files = [], named = [], command, is }) => {
      const { unread, unknown, ...said } = readTool(tool, input)
      expect([...said.files].toSorted()).toEqual(files.toSorted())
      expect(said.command).toBe(command)
      // Of what may name a file, all that could be one must be there.
      for (const each of named) expect(said.named).toContain(each)
      const found = unread === undefined ? unknown && 'unknown' : 'unread'
      expect(found).toBe(is)
    },
  )
})

test('nothing is silent but what the page says, with the reason', () => {
  const rows = Object.values(inputs).flat()
  expect(rows.length).toBeGreaterThanOrEqual(78)
  const silent = rows.filter(({ tool, input }) => {
    const { files, named = [], command, unread, unknown } = readTool(tool, input)
    const isSeen = [command, unread, unknown].some((each) => each !== undefined)
    return files.length + named.length === 0 && !isSeen
  })
  const row = ({ tool, input }: tables.ToolInput) => JSON.stringify([tool, input])
  expect(new Set(silent.map(row))).toEqual(new Set(inputs.SILENT.map(row)))
  for (const reason of REASONS) expect(PAGE).toContain(reason)
})
