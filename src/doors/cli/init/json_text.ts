import {
  applyEdits,
  getNodeValue,
  type JSONPath,
  modify,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from 'jsonc-parser'
import { Refusal } from '../../../core/refusal.ts'
import { eolOf } from './block.ts'

const INDENT = 2
const BOM = '\u{FEFF}'

/** A JSON file as its people wrote it: comments, order, indentation and line ends stay. */
export class JsonText {
  private text: string
  private readonly bom: string

  /** Refuses (`invalid`) what is broken, with line and column, and what is no object. */
  constructor(
    text: string | undefined,
    private readonly path: string,
  ) {
    this.bom = text?.startsWith(BOM) ? BOM : ''
    const plain = (text ?? '').slice(this.bom.length)
    this.text = plain.trim() === '' ? `{}${plain || '\n'}` : plain
    if (this.tree().type !== 'object') throw this.refusal(0, 'it holds no object')
  }

  private tree(): Node {
    const errors: ParseError[] = []
    const tree = parseTree(this.text, errors, { allowTrailingComma: true })
    const [first] = errors
    if (first) throw this.refusal(first.offset, printParseErrorCode(first.error))
    if (!tree) throw this.refusal(0, 'it is empty')
    return tree
  }

  private refusal(offset: number, why: string): Refusal {
    const before = this.text.slice(0, offset).split('\n')
    const [line, column] = [before.length, before.at(-1)!.length + 1]
    return new Refusal('invalid', `${this.path}:${line}:${column}: broken JSON (${why})`, {
      next: 'Mend the file, then run leasehold init again. Nothing was written.',
      details: { path: this.path, line, column },
    })
  }

  get value(): Record<string, unknown> {
    // Cloned, because the parser's objects have no prototype and equal no others.
    return structuredClone(getNodeValue(this.tree())) as Record<string, unknown>
  }

  /** What stands at `path`. Refuses (`invalid`) anything but an object there. */
  object(path: string[]): Record<string, unknown> | undefined {
    let found: unknown = this.value
    for (const key of path) {
      found = (found as Record<string, unknown>)[key]
      if (found === undefined) return undefined
      if (!isObject(found)) throw this.misfit(path, 'an object')
    }
    return found as Record<string, unknown>
  }

  misfit(path: JSONPath, what: string): Refusal {
    return new Refusal('invalid', `${this.path}: ${path.join('.')} is not ${what}`, {
      next: 'Mend the file, then run leasehold init again. Nothing was written.',
      details: { path: this.path },
    })
  }

  set(path: JSONPath, value: unknown): void {
    this.edit(path, value, false)
  }

  append(path: JSONPath, value: unknown): void {
    this.edit([...path, -1], value, true)
  }

  remove(path: JSONPath): void {
    this.edit(path, undefined, false)
  }

  private edit(path: JSONPath, value: unknown, isArrayInsertion: boolean): void {
    const indent = /^([ \t]+)\S/m.exec(this.text)?.[1] ?? ' '.repeat(INDENT)
    const formattingOptions = {
      insertSpaces: !indent.startsWith('\t'),
      tabSize: indent.startsWith('\t') ? 1 : indent.length,
      eol: eolOf(this.text),
    }
    const edits = modify(this.text, path, value, { formattingOptions, isArrayInsertion })
    this.text = applyEdits(this.text, edits)
    this.tree()
  }

  toString(): string {
    return this.bom + this.text
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
