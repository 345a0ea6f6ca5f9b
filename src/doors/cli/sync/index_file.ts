import { constants } from 'node:fs'
import { readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { Refusal } from '../../../core/refusal.ts'
import { uniqueId } from '../../../machine/digest.ts'
import { writeDurably } from '../../../stores/file/durable.ts'
import { isOurs } from './names.ts'

const INDEX_FILE = '.leasehold-sync.json'

/** What a file was when it was last the same as in the store. */
export interface Entry {
  scope: string
  key: string
  /** The version that the file says. */
  version: number
  /** The newest version of the note then: when that has risen, there is something to look at. */
  seen: number
  /** SHA-256 of the file. */
  hash: string
  /** Whether it is the file of a sibling: shown as long as the conflict is open. */
  sibling: boolean
}

export type Entries = Map<string, Entry>

interface Document {
  format: 1
  store: string
  files: Record<string, Entry>
}

/** What was synced before, and the text of the file that says so. */
export interface Index {
  entries: Entries
  text: string
}

/**
 * What was synced before. Refuses (`invalid`) a folder that belongs to another store: its versions
 * mean nothing here. One that cannot be read is as good as none: equal contents are no changes.
 */
export async function readIndex(dir: string, store: string): Promise<Index> {
  const text = await readText(dir)
  const document = documentIn(text)
  if (!document) return { entries: new Map(), text }
  if (document.store !== store) {
    throw new Refusal('invalid', `${dir} was synced with another store: ${document.store}`, {
      next: `Use that store, or another folder. To begin anew here, delete ${INDEX_FILE} there.`,
      details: { store: document.store },
    })
  }
  const files = Object.entries(document.files).filter(([path, each]) => isEntry(path, each))
  return { entries: new Map(files), text }
}

function readText(dir: string): Promise<string> {
  const flag = constants.O_RDONLY | constants.O_NOFOLLOW
  return readFile(join(dir, INDEX_FILE), { encoding: 'utf8', flag }).catch(() => '')
}

function documentIn(text: string): Document | undefined {
  try {
    const document = JSON.parse(text) as Document
    return document.format === 1 && typeof document.files === 'object' ? document : undefined
  } catch {
    return undefined
  }
}

function isEntry(path: string, entry: Entry): boolean {
  const { scope, key, version, seen, hash } = entry ?? {}
  const texts = [scope, key, hash].every((each) => typeof each === 'string')
  return isOurs(path) && texts && Number.isSafeInteger(version) && Number.isSafeInteger(seen)
}

/** Writes the index only if it changed: a program that watches the folder hears of every write. */
export async function writeIndex(dir: string, store: string, index: Index): Promise<void> {
  const document: Document = { format: 1, store, files: Object.fromEntries(index.entries) }
  const text = `${JSON.stringify(document, null, 1)}\n`
  if (text === index.text) return
  const fresh = join(dir, `${INDEX_FILE}.${uniqueId().slice(0, 8)}.lh-new`)
  await writeDurably(fresh, Buffer.from(text))
  await rename(fresh, join(dir, INDEX_FILE))
  index.text = text
}
