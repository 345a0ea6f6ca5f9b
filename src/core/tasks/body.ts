import type { Task } from '../schema/task.ts'
import type { View } from '../view.ts'

/**
 * A prompt may be megabytes, and a task is read and written whenever it moves or is listed. So its
 * row has only the beginning of a long body; the rest is a row of its own, read where all is asked
 * for. Older stores have long bodies whole in the task's row.
 */
const BEGINNING = 4_096

type Body = Pick<Task, 'body' | 'body_apart'>

/** Where to cut a body: half of a character is no text. */
const cutOf = (body: string) => (/[\ud800-\udbff]/.test(body[BEGINNING - 1]!) ? 1 : 0) + BEGINNING

/** Keeps a body, and returns what of it goes into the row of its task. */
export function keepBody(view: View, id: string, body: string, before?: Body): Body {
  if (body.length > BEGINNING + 1) {
    const cut = cutOf(body)
    view.put('task_text', { id, rest: body.slice(cut) })
    return { body: body.slice(0, cut), body_apart: body.length - cut }
  }
  if (before?.body_apart) view.remove('task_text', id)
  return { body, body_apart: 0 }
}

/** All of it. */
export const bodyOf = (view: View, { id, body, body_apart }: Task) =>
  body_apart > 0 ? body + (view.get('task_text', id)?.rest ?? '') : body

interface Beginning {
  body: string
  body_left_out?: number | undefined
}

/** For lists: its beginning, and how many characters that leaves out, if any. */
export function beginningOf({ body, body_apart }: Body): Beginning {
  const cut = body.length > BEGINNING + 1 ? cutOf(body) : body.length
  const body_left_out = body.length - cut + body_apart
  return { body: body.slice(0, cut), ...(body_left_out > 0 && { body_left_out }) }
}
