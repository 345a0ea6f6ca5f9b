import type { Resource } from '../schema/queue.ts'
import type { Task } from '../schema/task.ts'
import type { Lease } from '../schema/lock.ts'
import { planted } from '../planted.ts'
import { Refusal } from '../refusal.ts'
import { limitOf, putLimit } from './limit.ts'
import { isResource, resourceKey } from './rows.ts'
import type { View } from '../view.ts'

/** What one host lends, and to runs of which projects. */
export interface Offer {
  name: string
  offered: string[]
  projects: string[]
}

/** Makes the configuration of a host true. What is lent and no longer offered is let run out. */
export function offerResources(view: View, host: string, offers: Offer[]): void {
  const known = new Set(offers.map(({ name }) => name))
  for (const each of [...view.scan('resources', '')]) {
    if (each.host !== host || known.has(each.name)) continue
    putResource(view, { ...each, offered: [], projects: [] })
  }
  for (const { name, offered, projects } of offers) {
    const key = resourceKey(host, name)
    const lent = view.get('resource', key)?.lent ?? {}
    putResource(view, { key, host, name, offered, projects, lent })
  }
}

/** The only way one is written: its limit counts what is lent, of all that there is. */
function putResource(view: View, resource: Resource): void {
  const { key, offered, lent } = resource
  const used = Object.keys(lent).length
  const isOver = offered.length === 0 && used === 0
  if (isOver) view.remove('resource', key)
  else view.put('resource', resource)
  const max = isOver ? null : new Set([...offered, ...Object.keys(lent)]).size
  putLimit(view, { ...limitOf(view, key), max, used })
}

/** What a run of `task` on this host is lent a value of. */
export const resourcesFor = (view: View, host: string, { project }: Task): Resource[] =>
  [...view.scan('resources', '')].filter(
    (each) => each.host === host && each.projects.includes(project ?? ''),
  )

const isFree = (resource: Resource) => (value: string) =>
  planted('R54 lent') || !Object.hasOwn(resource.lent, value)

/** One of which every value is lent. */
export const emptyOf = (resources: Resource[]) =>
  resources.find((each) => !each.offered.some(isFree(each)))

/** Lends a free value of each to a claim, which remembers them, and gives them back at its end. */
export function lend(view: View, lease: Lease, resources: Resource[]): Lease {
  if (resources.length === 0 || !lease.terms) return lease
  const lent: Record<string, string> = {}
  for (const each of resources) {
    const value = each.offered.find(isFree(each))
    if (value === undefined) throw new Refusal('internal', `${each.name} was free just now`)
    lent[each.name] = value
    putResource(view, { ...each, lent: { ...each.lent, [value]: lease.name } })
  }
  const limits = [...lease.terms.limits, ...resources.map(({ key }) => key)]
  const lending = { ...lease, terms: { ...lease.terms, limits, lent } }
  view.put('lease', lending)
  return lending
}

/** Takes back all that a claim was lent, exactly once: when its lease ends. */
export function takeBack(view: View, lease: Lease): void {
  for (const key of lease.terms?.limits ?? []) {
    const resource = isResource(key) ? view.get('resource', key) : undefined
    if (!resource) continue
    const left = Object.entries(resource.lent).filter(([, by]) => by !== lease.name)
    putResource(view, { ...resource, lent: Object.fromEntries(left) })
  }
}
