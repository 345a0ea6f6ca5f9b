import * as z from 'zod/mini'
import { LANDING_STATUSES } from '../../core/landing/rows.ts'
import * as tables from '../../core/schema/landing.ts'
import { columnsOf, count, orNull, page, shape, text } from './shape.ts'

const listedFields = () => ({
  ...columnsOf(tables.landing, ['seq', 'rank', 'output'], { status: z.enum(LANDING_STATUSES) }),
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
