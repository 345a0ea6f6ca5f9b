import type { LandingRule } from '../schema/landing.ts'
import type { Task } from '../schema/task.ts'
import type { SettingRows } from '../queue/host_settings.ts'
import type { View } from '../view.ts'

/** How tasks of a project are landed; undefined where its config.json says nothing of it. */
export const ruleFor = (view: View, project: string | null): LandingRule | undefined =>
  project === null ? undefined : view.get('landing_rule', project)

/** Whether a task becomes `done` only by a check that passed, or by being landed. */
export const mustProve = (view: View, { project }: Task) => ruleFor(view, project) !== undefined

type Field = 'onto' | 'auto' | 'checks'
const NONE = { onto: null, auto: false, checks: false }

/** `projects.web.land.onto` and the like. A project of which nothing is left has no rule. */
export const LANDING_ROWS: SettingRows = {
  get: (view, [, project = '', , field]) =>
    ({ ...NONE, ...ruleFor(view, project) })[field as Field],
  put(view, [, project = '', , field], value) {
    const said = { [field as Field]: value ?? NONE[field as Field] }
    const rule: LandingRule = { project, ...NONE, ...ruleFor(view, project), ...said }
    if (rule.onto === null && !rule.checks) view.remove('landing_rule', project)
    else view.put('landing_rule', rule)
  },
}
