import { eachMember, eachRow } from '#databases/drivers/json-rows.ts'
import type { Column } from '#databases/plan/catalogue.ts'
import type { Comparison, Condition, Json } from '#databases/request/request.ts'
import type { Match } from '#kernel/events/payload.ts'
import { startTimeSlice } from '#kernel/time-slice.ts'
import { type Comparable, comparableOf, comparableOfJson } from './comparable.ts'

/** Where the rows of an event have a column, and its type if that is known. Undefined: they do not have it as it is stored. */
export type FieldOf = (column: string) => Field | undefined
type Field = {
  readonly member: string
  readonly column: Column | undefined
  /** A member that a row lacks is NULL. */
  readonly isStripped: boolean
}

/**
 * Whether one of the rows meets the condition. `json` is the text of the array, whose digits are all kept. `affected` rows were written; what
 * the answer leaves out of them, whole rows or a column, may meet it.
 */
export async function judgeRows(
  json: string,
  condition: Condition<string>,
  fieldOf: FieldOf,
  affected = 0,
): Promise<Match> {
  const judge = judgeOf(condition, fieldOf)
  const slice = startTimeSlice()
  let seen = 0
  let isPossible = false
  for (const row of eachRow(json)) {
    const truths = judge(new Map(eachMember(row)))
    if (truths === TRUE) return 'met'
    if ((truths & TRUE) !== 0) isPossible = true
    seen++
    if (slice.isOver()) await slice.next()
  }
  return isPossible || seen < affected ? 'unknown' : 'unmet'
}

/** Undefined is the `unknown` of SQL: NULL was compared, or a value does not fit its type. */
type Truth = boolean | undefined

/** The truths that are possible, as bits: more than one where the row lacks a column. */
type Truths = number
const [TRUE, FALSE, NULL] = [1, 2, 4] as const
const ANY: Truths = TRUE | FALSE | NULL
type Judge = (row: ReadonlyMap<string, string>) => Truths

const only = (truth: Truth): Truths => (truth === undefined ? NULL : truth ? TRUE : FALSE)

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

const negated = (truths: Truths): Truths =>
  (truths & NULL) | ((truths & TRUE) !== 0 ? FALSE : 0) | ((truths & FALSE) !== 0 ? TRUE : 0)

function anyOf(judges: readonly Judge[], row: ReadonlyMap<string, string>): Truths {
  let truths: Truths = FALSE
  for (const judge of judges) {
    truths = either(truths, judge(row))
    if (truths === TRUE) return TRUE
  }
  return truths
}

/** False only when both can be, and NULL when one can be and the other need not be true. */
function either(one: Truths, other: Truths): Truths {
  const isNull = ((one | other) & NULL) !== 0 && one !== TRUE && other !== TRUE
  return ((one | other) & TRUE) | (one & other & FALSE) | (isNull ? NULL : 0)
}

function comparisonJudge(comparison: Comparison<string>, fieldOf: FieldOf): Judge {
  const field = fieldOf(comparison.column)
  if (field === undefined) return () => ANY
  const { member, column, isStripped } = field
  const known = column && comparableOf(column)
  const judge = (json: string | null): Truths =>
    only(compared(comparison, json, json === null || column !== undefined ? known : comparableOfJson(json)))
  return (row) => {
    const json = row.get(member)
    if (json === undefined) return isStripped ? judge(null) : ANY
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
