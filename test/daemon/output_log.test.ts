import {
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { OutputLog } from '../../src/daemon/runner/output_log.ts'
import { makeRunFolder, readMeta } from '../../src/daemon/runner/run_folder.ts'
import { temporaryFolder } from '../support/helpers.ts'
import { runners } from './runner_agent.ts'
import { writePrivate } from '../../src/machine/private_file.ts'
import { runFolder } from '../../src/machine/run_output.ts'

const sizeIn = (folder: string) =>
  readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)

const read = (folder: string, name: string) => readFileSync(join(folder, name), 'utf8')

describe('output is bounded', () => {
  test('never more than the bound on disk, and the newest is there', () => {
    for (const bytes_max of [1024, 1001, 3]) {
      const folder = temporaryFolder()
      const log = new OutputLog(folder, bytes_max)
      let said = ''
      for (let i = 0; i < 500; i += 1) {
        const line = `line ${i} ${'x'.repeat(i % 90)}\n`
        said += line
        log.write(Buffer.from(line))
        expect(sizeIn(folder)).toBeLessThanOrEqual(bytes_max)
      }
      log.close()
      const kept = read(folder, 'output.log.1') + read(folder, 'output.log')
      expect(said.endsWith(kept)).toBe(true)
      expect(kept.length).toBeGreaterThanOrEqual(Math.floor(bytes_max / 2))
      expect(statSync(join(folder, 'output.log')).mode & 0o777).toBe(0o600)
    }
  })

  test('one chunk that is larger than all of it', () => {
    const folder = temporaryFolder()
    const log = new OutputLog(folder, 1000)
    log.write(Buffer.from(`${'a'.repeat(10_000)}end`))
    log.close()
    expect(sizeIn(folder)).toBeLessThanOrEqual(1000)
    expect(read(folder, 'output.log').endsWith('end')).toBe(true)
  })

  test('of a command that says far too much; it is not held up', async () => {
    const all = await runners()
    const body = 'head -c 50000000 /dev/zero; echo; echo last'
    const { run, spec } = await all.through(body, { log_bytes_max: 50_000 })
    expect(run).toMatchObject({ status: 'completed' })
    const names = readdirSync(spec.folder).toSorted()
    expect(names).toEqual(['meta.json', 'output.cut', 'output.log', 'output.log.1'])
    const logs = names.slice(2).map((name) => statSync(join(spec.folder, name)).size)
    expect(Math.max(...logs)).toBeLessThanOrEqual(25_000)
    expect(all.output(spec).endsWith('\nlast\n')).toBe(true)
  })
})

describe('a log that cannot be written', () => {
  test('drops what is said, and says so once when it works again', () => {
    const parent = temporaryFolder()
    const folder = join(parent, 'run')
    mkdirSync(folder)
    const log = new OutputLog(folder, 100)
    log.write(Buffer.from('a'.repeat(50)))
    rmSync(folder, { recursive: true })
    for (let i = 0; i < 10; i += 1) log.write(Buffer.from('lost'))
    mkdirSync(folder)
    log.write(Buffer.from('back\n'))
    log.write(Buffer.from('and on\n'))
    log.close()
    const text = readdirSync(folder)
      .toSorted()
      .toReversed()
      .map((name) => read(folder, name))
    expect(text.join('')).toBe('\n[leasehold: 40 bytes were lost here: ENOENT]\nback\nand on\n')
  })

  test('what stands in its place is not followed and not written to', () => {
    const folder = temporaryFolder()
    const target = join(temporaryFolder(), 'target')
    writeFileSync(target, 'precious')
    symlinkSync(target, join(folder, 'output.log'))
    const log = new OutputLog(folder, 1000)
    log.write(Buffer.from('said'))
    log.close()
    expect(readFileSync(target, 'utf8')).toBe('precious')
    expect(read(folder, 'output.log')).toBe('said')
  })
})

describe('the folder of a run', () => {
  test('is named after the run, unless that could mean another place', () => {
    expect(runFolder('/s', '42.1')).toBe('/s/runs/42.1')
    for (const id of ['../../etc.1', '..', '.1', 'a/b.1', 'ü.1', 'x'.repeat(200), '']) {
      expect(runFolder('/s', id), id).toMatch(/^\/s\/runs\/sha256-[0-9a-f]{64}$/)
    }
  })

  test('is made once, and refused where it is a link or others may look in', () => {
    const state = temporaryFolder()
    const folder = runFolder(state, '1.1')
    expect([makeRunFolder(folder), makeRunFolder(folder)]).toEqual([true, false])
    const link = runFolder(state, '1.2')
    symlinkSync(folder, link)
    expect(() => makeRunFolder(link)).toThrow('not a folder of this login alone')
    const lax = runFolder(state, '1.3')
    mkdirSync(lax, { mode: 0o755 })
    expect(() => makeRunFolder(lax)).toThrow('not a folder of this login alone')
  })

  test('a file is written whole, and nothing else stays behind', () => {
    const folder = temporaryFolder()
    const target = join(folder, 'target')
    symlinkSync(target, join(folder, 'meta.json'))
    writePrivate(folder, 'meta.json', '{"id":"1.1"}')
    expect(readdirSync(folder)).toEqual(['meta.json'])
    expect(readMeta(folder)).toEqual({ id: '1.1' })
    writeFileSync(join(folder, 'meta.json'), '{"id":')
    expect(readMeta(folder)).toBeUndefined()
  })
})
