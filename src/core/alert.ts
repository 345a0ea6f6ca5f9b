import type { Alert } from './stat_rows.ts'
import type { View } from './view.ts'

/** An alert as doors show it. */
export function showAlert({ key, rule, subject, message, since_at, ended_at }: Alert) {
  return { id: key, rule, subject, message, since: since_at, ended_at }
}

/** Conditions that hold now, the oldest first. */
export function* activeAlerts(view: View): Generator<Alert> {
  for (const alert of view.scan('alerts', '')) if (alert.ended_at === null) yield alert
}
