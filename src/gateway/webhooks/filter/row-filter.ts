import { eachMember, eachRow } from '#databases/drivers/json-rows.ts'
import type { Column } from '#databases/plan/catalogue.ts'
import type { Comparison, Condition, Json } from '#databases/request/request.ts'
import { startTimeSlice } from '#kernel/time-slice.ts'
import { type Comparable, comparableOf, comparableOfJson } from './comparable.ts'

/** Where the rows of an event have a column, and its type if that is known. Undefined: they do not have it. */
export type FieldOf = (column: string) => Field | undefined
export type Field = {
  readonly member: string
  readonly column: Column | undefined
  /** A member that a row lacks is NULL. */
  readonly isStripped: boolean
}

/** Whether one of the rows meets the condition. `json` is the text of the array, whose digits are all kept. */
export async function someRowMeets(
  json: string,
  condition: Condition<string>,
  fieldOf: FieldOf,
): Promise<boolean> {
  const meets = judgeOf(condition, fieldOf)
  const slice = startTimeSlice()
  for (const row of eachRow(json)) {
    if (meets(new Map(eachMember(row))) === true) return true
    if (slice.isOver()) await slice.next()
  }
  return false
}

/** Undefined is the `unknown` of SQL: NULL was compared, the rows do not have the column, or a value does not fit its type. */
type Truth = boolean | undefined
type Judge = (row: ReadonlyMap<string, string>) => Truth

function judgeOf(condition: Condition<string>, fieldOf: FieldOf): Judge {
  if (condition.kind === 'compare') return comparisonJudge(condition, fieldOf)
  if (condition.kind === 'not') {
    const judge = judgeOf(condition.term, fieldOf)
    return (row) => negated(judge(row))
  }
  const judges = condition.terms.map((term) => judgeOf(term, fieldOf))
  if (condition.kind === 'any') return (row) => anyOf(judges, row)
  const negations = judges.map(
    (judge): Judge =>
      (row) =>
        negated(judge(row)),
  )
  return (row) => negated(anyOf(negations, row))
}

const negated = (truth: Truth): Truth => (truth === undefined ? undefined : !truth)

function anyOf(judges: readonly Judge[], row: ReadonlyMap<string, string>): Truth {
  let truth: Truth = false
  for (const judge of judges) {
    const one = judge(row)
    if (one === true) return true
    if (one === undefined) truth = undefined
  }
  return truth
}

function comparisonJudge(comparison: Comparison<string>, fieldOf: FieldOf): Judge {
  const field = fieldOf(comparison.column)
  if (field === undefined) return () => undefined
  const { member, column, isStripped } = field
  const known = column && comparableOf(column)
  const judge = (json: string | null): Truth =>
    compared(comparison, json, json === null || column !== undefined ? known : comparableOfJson(json))
  return (row) => {
    const json = row.get(member)
    if (json === undefined) return isStripped ? judge(null) : undefined
    return judge(json === 'null' ? null : json)
  }
}

/** `json` is the value in the row, null for NULL. */
function compared(
  { operator, value }: Comparison<string>,
  json: string | null,
  type: Comparable | undefined,
): Truth {
  if (operator === 'is') return isTruth(String(value), json)
  if (operator === 'in') return isAmong(value as readonly Json[], json, type) // conditions.ts gives `in` only lists
  if (value === null)
    return operator === 'eq' ? json === null : operator === 'neq' ? json !== null : undefined
  const order = json === null ? undefined : type?.compare(textOf(json), valueText(value))
  if (order === undefined || type === undefined) return undefined
  if (operator === 'eq') return order === 0
  if (operator === 'neq') return order !== 0
  return type.hasOrder ? meetsOrder(operator, order) : undefined
}

function meetsOrder(operator: string, order: number): Truth {
  if (operator === 'gt') return order > 0
  if (operator === 'gte') return order >= 0
  if (operator === 'lt') return order < 0
  return operator === 'lte' ? order <= 0 : undefined
}

function isTruth(word: string, json: string | null): Truth {
  if (word === 'null' || word === 'unknown') return json === null
  if (json === null) return false
  return json === 'true' || json === 'false' ? json === word : undefined
}

/** A null in the list is met by NULL, as in the conditions of requests. */
function isAmong(items: readonly Json[], json: string | null, type: Comparable | undefined): Truth {
  if (json === null) return items.includes(null) ? true : items.length === 0 ? false : undefined
  const text = textOf(json)
  const given = items.filter((item) => item !== null)
  const orders = given.map((item) => type?.compare(text, valueText(item)))
  if (orders.includes(0)) return true
  return orders.includes(undefined) ? undefined : false
}

/** The text of a value in a row, as the database writes it. */
const textOf = (json: string): string => (json.startsWith('"') ? JSON.parse(json) : json)

/** The text of a value of a condition, with every digit. */
const valueText = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value))
