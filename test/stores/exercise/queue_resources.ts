import { describe, expect } from 'vitest'
import { offerResources } from '../../../src/core/queue/resource.ts'
import { ADMIN } from '../../support/queue_verbs.ts'
import { type QueueScene, queueTests } from './queue_scene.ts'
import type { Begin } from './scene.ts'

/** R54: what a host lends comes with the claim, goes back with it, and is never lent twice. */
export function exerciseQueueResources(begin: Begin): void {
  const test = queueTests(begin)

  /** What the dispatcher `d` lends to runs of web, whose id is also the name of its host. */
  const offer = ({ store }: QueueScene, offered: string[], host = 'd') =>
    store.write((view) =>
      offerResources(view, host, [{ name: 'ports', offered, projects: ['web'] }]),
    )
  const enqueue = async ({ verbs }: QueueScene, ...ids: string[]) => {
    for (const id of ids) await verbs.enqueue({ id, user: id, project: 'web' })
  }
  const lentTo = async (scene: QueueScene, id: string) =>
    (await scene.claim(id)).lease.terms?.lent?.['ports']
  const lent = ({ store }: QueueScene) =>
    store.read((view) => [...view.scan('resources', '')].flatMap((each) => Object.keys(each.lent)))

  describe('lent resources', () => {
    test('come with the claim, each value to one run, and go back with it', async (scene) => {
      await offer(scene, ['5100', '5101'])
      await enqueue(scene, 'a', 'b', 'c')
      expect(await lentTo(scene, 'a')).toBe('5100')
      expect(await lentTo(scene, 'b')).toBe('5101')
      expect(await scene.next()).toBeUndefined()
      expect(await scene.verbs.explain('c')).toEqual(['resource_limit'])
      await scene.end('a')
      expect(await lent(scene)).toEqual(['5101'])
      expect(await lentTo(scene, 'c')).toBe('5100')
    })

    test('go to runs of the projects that name them only', async (scene) => {
      await offer(scene, ['5100'])
      await enqueue(scene, 'a')
      await scene.verbs.enqueue({ id: 'b', user: 'b', project: 'api' })
      expect(await lentTo(scene, 'a')).toBe('5100')
      expect(await lentTo(scene, 'b')).toBeUndefined()
    })

    test('no longer offered are let run out; a new value is lent at once', async (scene) => {
      await offer(scene, ['old'])
      await enqueue(scene, 'a', 'b', 'c')
      expect(await lentTo(scene, 'a')).toBe('old')
      expect(await scene.next()).toBeUndefined()
      await offer(scene, ['new'])
      expect(await lentTo(scene, 'b')).toBe('new')
      await scene.end('a')
      expect(await scene.next()).toBeUndefined()
      await scene.end('b')
      expect(await lentTo(scene, 'c')).toBe('new')
    })

    test('of another host are lent there, when here every value is', async (scene) => {
      await scene.verbs.register('e')
      await offer(scene, ['5100'])
      await offer(scene, ['6100'], 'e')
      await enqueue(scene, 'a', 'b')
      expect(await lentTo(scene, 'a')).toBe('5100')
      expect(await scene.next()).toBeUndefined()
      expect((await scene.claim('b', 'e')).lease.terms?.lent).toEqual({ ports: '6100' })
    })

    test('go back when a run is lost, and are forgotten when not offered', async (scene) => {
      await offer(scene, ['5100'])
      await enqueue(scene, 'a')
      await lentTo(scene, 'a')
      await scene.verbs.forceRelease('task:a', ADMIN)
      expect(await lent(scene)).toEqual([])
      await scene.store.write((view) => offerResources(view, 'd', []))
      expect(await scene.store.read((view) => [...view.scan('resources', '')])).toEqual([])
    })
  })
}
