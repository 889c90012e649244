import { isRecords } from '#databases/drivers/postgres/sql/composite-values.ts'
import type { Column } from '#databases/plan/catalogue.ts'
import { parseDecimal } from '#databases/request/decimal.ts'
import type { Json } from '#databases/request/request.ts'

/** The written columns and values, for failures that PostgreSQL reports without a column. */
export type WrittenValues = {
  readonly written: readonly Column[]
  /** Values that the request gives for the column. */
  readonly given: (column: Column) => readonly Json[]
}

/**
 * Finds the column whose value was refused: the value is too long for its type, or the server's message quotes it. The message may be in
 * any language, so only codes, types and values are compared.
 */
export function findRefusedColumn(
  { code, message }: { readonly code: string; readonly message: string },
  { written, given }: WrittenValues,
): Column | undefined {
  const holds = (column: Column, test: (text: string) => boolean) =>
    given(column).some((value) => textsOf(value).some(test))
  if (TOO_LONG.has(code)) {
    const exceeding = written.find((column) => holds(column, (text) => exceeds(elementOf(column), text)))
    if (exceeding !== undefined) return exceeding
  }
  const quoted = quotedIn(message)
  const holding = written.filter(
    (column) => !takesAnyText(column) && holds(column, (text) => text === quoted),
  )
  const named = holding.find((column) => message.includes(`type ${elementOf(column)}`))
  return named ?? holding[0] ?? only(written.filter((column) => isComposed(column, given))) ?? only(written)
}

/** string_data_right_truncation, string_data_length_mismatch, numeric_value_out_of_range. */
const TOO_LONG: ReadonlySet<string> = new Set(['22001', '22026', '22003'])

/** `numeric(5,2)` also for `numeric(5,2)[]`. */
const elementOf = ({ type }: Column): string => (type.endsWith('[]') ? type.slice(0, -2) : type)

/** Whether a text is too long for `character varying(3)`, `character(3)`, `bit(3)` or `numeric(5,2)`. */
function exceeds(type: string, text: string): boolean {
  const [, name, length, scale = '0'] = /^([a-z ]{1,20})\((\d{1,9})(?:,(-?\d{1,4}))?\)$/.exec(type) ?? []
  if (name === 'numeric') return exceedsNumeric(text, Number(length), Number(scale))
  if (name === 'bit') return text.length !== Number(length)
  // Trailing spaces are cut without an error.
  return name !== undefined && [...text.trimEnd()].length > Number(length)
}

/** Whether the rounded |value| ≥ 10^(precision - scale), which begins at ½ of the last place below it. */
function exceedsNumeric(text: string, precision: number, scale: number): boolean {
  const value = parseDecimal(text)
  if (value === undefined || scale < 0) return false
  const digits = value.digits < 0n ? -value.digits : value.digits
  const max = 2n * 10n ** BigInt(precision) - 1n
  return 2n * digits * 10n ** BigInt(scale) >= max * 10n ** BigInt(value.scale)
}

/** The text between the first and the last quotation mark, because a value may contain some. */
function quotedIn(message: string): string | undefined {
  const from = message.indexOf('"')
  const end = message.lastIndexOf('"')
  return from < end ? message.slice(from + 1, end) : undefined
}

const takesAnyText = ({ category, type }: Column): boolean => category === 'S' && !type.endsWith(')')

/** A composite value: one of its fields does not fit. */
const isComposed = (column: Column, given: WrittenValues['given']): boolean =>
  given(column).some((value) =>
    column.category === 'C'
      ? value !== null
      : isRecords(column, value) || (isRecord(value) && !column.base.startsWith('json')),
  )

const isRecord = (value: Json): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)

/** The value and each nested value as text. */
function textsOf(value: Json): string[] {
  if (value === null) return []
  if (typeof value !== 'object') return [String(value)]
  if (JSON.isRawJSON(value)) return [value.rawJSON]
  return Object.values(value).flatMap(textsOf)
}

const only = <T>(items: readonly T[]): T | undefined => (items.length === 1 ? items[0] : undefined)
