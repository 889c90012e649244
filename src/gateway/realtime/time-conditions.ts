import type { Column } from '#databases/plan/catalogue.ts'
import type { Condition, Json } from '#databases/request/request.ts'

/** Whether other rows fit it tomorrow, although none has changed: PostgreSQL reads some words as times that go on (manual, 8.5.1.4). */
export function dependsOnTime(condition: Condition<Column>): boolean {
  if (condition.kind === 'not') return dependsOnTime(condition.term)
  if (condition.kind !== 'compare') return condition.terms.some(dependsOnTime)
  const { column, columnCast, valueCast, value } = condition
  const isTime = [column.base, columnCast, valueCast].some((type) => type !== undefined && TIMES.test(type))
  return isTime && tellsTime(value)
}

const TIMES = /^"?_?(?:date|time|ts(?:tz)?(?:multi)?range)/i
/** Digits may stand beside them: `today04:00`. */
const WORDS = /now|today|tomorrow|yesterday/i

const tellsTime = (value: Json): boolean =>
  Array.isArray(value) ? value.some(tellsTime) : typeof value === 'string' && WORDS.test(value)
