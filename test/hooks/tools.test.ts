import { describe, expect, test } from 'vitest'
import { readTool } from '../../src/hooks/tools.ts'
import * as inputs from './tool_inputs.ts'

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

test('the table has every kind of tool that was tried', () => {
  expect(Object.values(inputs).flat().length).toBeGreaterThanOrEqual(78)
})
