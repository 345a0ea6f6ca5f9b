import { expect, test } from 'vitest'
import { call } from '../../src/operations/call.ts'
import * as tasks from '../../src/operations/tasks.ts'
import {
  callerOf,
  MachineSim,
  openFile,
  openMemory,
  openSqlite,
  temporaryFolder,
} from '../support/helpers.ts'
import { until } from '../support/processes.ts'

const ada = callerOf('ada')

for (const [name, open] of Object.entries({ openMemory, openSqlite, openFile })) {
  for (const follows of [false, true]) {
    const how = follows ? 'a follower' : 'the writer'
    test(`${name}: for a listener that throws ${how} does nothing twice`, async () => {
      const store = open(temporaryFolder(), new MachineSim())
      if (follows) await store.follow(10)
      const warned: string[] = []
      const hear = (warning: Error) => void warned.push(warning.message)
      process.on('warning', hear)
      const heard: string[] = []
      store.onCommit(() => {
        throw new Error('this listener is broken')
      })
      store.onCommit((events) => {
        heard.push(...events.filter(({ type }) => type === 'task.created').map(({ type }) => type))
      })
      const titles = ['one', 'two', 'three']
      await Promise.all(titles.map((title) => call(store, tasks.create, { title }, ada)))
      const { items } = await call(store, tasks.list, {}, ada)
      expect(items.map(({ title }) => title)).toEqual(titles)
      // A commit of our own that comes while a follower looks is told when it has looked.
      await until('all is heard', () => heard.length >= 3)
      expect(heard).toHaveLength(3)
      await new Promise((resolve) => void setImmediate(resolve))
      expect(warned).toContain('this listener is broken')
      process.off('warning', hear)
      await store.close()
    })
  }
}
