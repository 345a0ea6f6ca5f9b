import * as z from 'zod/mini'
import { LANDING_STATUSES } from '../../core/landing/rows.ts'
import { count, orNull, page, shape, strings, text, time } from './shape.ts'

const listedFields = () => ({
  id: text(),
  project: text(),
  target: orNull(text()),
  branch: orNull(text()),
  commit: orNull(text()),
  task_id: orNull(text()),
  priority: count(),
  status: z.enum(LANDING_STATUSES),
  fence: orNull(count()),
  base: orNull(text()),
  candidate: orNull(text()),
  reason: orNull(text()),
  paths: strings(),
  asked_by: text(),
  asked_at: time(),
  ended_at: orNull(time()),
  position: orNull(count()),
})

const fields = () => ({ ...listedFields(), output: orNull(text()) })

export const landing = shape('Landing', 'A branch on its way to a target.', fields)
export const added = shape('AddedLanding', 'A landing, and what happens to it now.', () => ({
  ...fields(),
  note: text(),
}))
const listed = shape('ListedLanding', 'A landing, without what its check said.', listedFields)
export const landings = page(listed)
