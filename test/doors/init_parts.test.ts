import * as fc from 'fast-check'
import { parse } from 'jsonc-parser'
import { describe, expect, test } from 'vitest'
import { KINDS } from '../../src/agents/kinds.ts'
import { hookEvents } from '../../src/doors/cli/init/agents.ts'
import { HASHES, withBlock, withHeadBlock, withoutBlock } from '../../src/doors/cli/init/block.ts'
import type { FileState } from '../../src/doors/cli/init/files.ts'
import { hookPart } from '../../src/doors/cli/init/hook_settings.ts'
import { fileOf } from '../../src/doors/cli/init/part.ts'
import { serverFor, serverPart } from '../../src/doors/cli/init/servers.ts'

const lines = fc.array(fc.constantFrom('', 'a', '# b', '  c', '[d]'), { maxLength: 6 })
const ends = fc.constantFrom('\n', '\r\n')
const texts = fc
  .tuple(lines, ends, fc.boolean())
  .map(([each, eol, isEnded]) => each.join(eol) + (isEnded ? eol : ''))
const told = (state: FileState) => (state.kind === 'file' ? state.bytes.toString() : state.kind)

describe('our part of a file', () => {
  test('a block put in twice is there once, and taken out leaves the text as it was', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const once = withBlock(text, 'x\ny', HASHES, 'f')
        expect(withBlock(once, 'x\ny', HASHES, 'f')).toBe(once)
        if (text !== '') expect(withoutBlock(once, HASHES, 'f')).toBe(text)
        const head = withHeadBlock(`#!/bin/sh\n${text}`, 'x', HASHES, 'f')
        expect(withHeadBlock(head, 'x', HASHES, 'f')).toBe(head)
        expect(withHeadBlock(head, 'z', HASHES, 'f')).toBe(head.replace('\nx', '\nz'))
      }),
    )
  })

  test('markers that do not pair are refused with their line', () => {
    for (const text of [
      '# leasehold:end\n# leasehold:begin',
      '# leasehold:begin\nx',
      'x\n# leasehold:end',
    ]) {
      expect(() => withBlock(text, 'x', HASHES, 'f')).toThrow(/^f:\d: the leasehold markers/)
    }
  })

  const hooks = fc.record(
    {
      model: fc.string(),
      hooks: fc.dictionary(
        fc.constantFrom('Stop', 'PreToolUse', 'Notification'),
        fc.array(
          fc.record({
            matcher: fc.constantFrom('Bash', '*'),
            hooks: fc.array(fc.record({ type: fc.constant('command'), command: fc.string() })),
          }),
          { maxLength: 3 },
        ),
        { minKeys: 1 },
      ),
    },
    { requiredKeys: [] },
  )

  test.for(KINDS)('hooks of others stay in their order (%s)', (agent) => {
    const part = hookPart({
      path: 'f',
      why: '',
      shape: agent === 'cursor' ? 'plain' : 'groups',
      root: {},
      events: hookEvents(agent, undefined),
    })
    fc.assert(
      fc.property(hooks, fc.constantFrom(2, 4, '\t'), ends, (settings, indent, eol) => {
        const text = JSON.stringify(settings, null, indent).replaceAll('\n', eol)
        const once = part.put(fileOf(text, 0o644))
        expect(told(part.put(once))).toBe(told(once))
        const merged = parse(told(once)) as { hooks: Record<string, unknown[]> }
        for (const [event, list] of Object.entries(settings.hooks ?? {})) {
          expect(merged.hooks[event]!.slice(0, list.length)).toEqual(list)
        }
        const back = part.take(once)
        const left = back.kind === 'missing' ? {} : (parse(told(back)) as typeof settings)
        expect(left.model).toBe(settings.model)
        for (const [event, list] of Object.entries(settings.hooks ?? {})) {
          expect(left.hooks?.[event] ?? []).toEqual(list)
        }
      }),
      { numRuns: 50 },
    )
  })

  test('a server that people have set up their own way stays theirs', () => {
    const json = serverPart('f', '', serverFor(false), 'mcpServers')
    const own = fileOf('{"mcpServers": {"leasehold": {"command": "/opt/lh"}}}', 0o644)
    expect(told(json.put(own))).toBe(told(own))
    expect(told(json.take(own))).toBe(told(own))
    const toml = serverPart('f', '', serverFor(false), 'toml')
    for (const text of ['[mcp_servers.leasehold]\ncommand = "x"\n', 'mcp_servers = {}\n']) {
      expect(told(toml.put(fileOf(text, 0o644)))).toBe(text)
    }
    const other = fileOf('[mcp_servers.docs]\ncommand = "x"\n', 0o644)
    expect(told(toml.put(other))).toContain('\n\n# leasehold:begin\n[mcp_servers.leasehold]\n')
    expect(told(toml.take(toml.put(other)))).toBe(told(other))
  })
})
