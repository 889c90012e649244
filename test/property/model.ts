import {
  type Decimal,
  dayOf,
  decimal,
  type Instant,
  type JsonValue,
  jsonContains,
  type Kind,
  type KindName,
  kinds,
  startOf,
  type Value,
} from './values.ts'

/** A model of gateway.md 4: tables, rows and conditions, evaluated in JavaScript with three-valued logic. */
export type Column = { readonly name: string; readonly kind: KindName; readonly nullable: boolean }
export type Table = {
  readonly schema: string
  readonly name: string
  readonly key: string
  readonly columns: readonly Column[]
}
export type Row = { readonly key: number; readonly values: readonly (Value | null)[] }

/** SQL's three-valued logic; undefined is unknown. */
export type Truth = boolean | undefined

export type Comparison = {
  readonly kind: 'compare'
  /** Index of the column; -1 is the key. */
  readonly column: number
  readonly operator: Operator
  readonly operand: Operand
  readonly columnCast?: Cast
  readonly valueCast?: ValueCast
}
export type Operator =
  | 'eq'
  | 'neq'
  | 'gt'
  | 'gte'
  | 'lt'
  | 'lte'
  | 'like'
  | 'ilike'
  | 'is'
  | 'in'
  | 'contains'
  | 'containedBy'
  | 'overlaps'
  | 'fts'
export type Operand =
  | { readonly kind: 'value'; readonly of: KindName; readonly value: Value | null }
  | { readonly kind: 'list'; readonly of: KindName; readonly values: readonly (Value | null)[] }
  | { readonly kind: 'word'; readonly word: 'null' | 'true' | 'false' | 'unknown' }
  | { readonly kind: 'pattern'; readonly pattern: readonly PatternPart[] }
  | { readonly kind: 'search'; readonly search: Search }

/** `%`, `_`, or one character. */
export type PatternPart = { readonly any: 'many' | 'one' } | { readonly character: string }
/** Alternatives of phrases that the text must or must not contain. */
export type Search = readonly (readonly { readonly words: readonly string[]; readonly not: boolean }[])[]

export type Condition =
  | Comparison
  | { readonly kind: 'all' | 'any'; readonly terms: readonly Condition[] }
  | { readonly kind: 'not'; readonly term: Condition }

/** Casts of columns. */
export const casts = {
  text: { sql: 'text', to: 'text', of: (value: Value, from: Kind) => from.text(value) },
  numeric: { sql: 'numeric', to: 'numeric', of: (value: Value) => value },
  bigint: { sql: 'bigint', to: 'bigint', of: (value: Value) => value },
  date: { sql: 'date', to: 'date', of: (value: Value) => dayOf(value as Instant) },
  truth: { sql: 'boolean', to: 'boolean', of: (value: Value) => (value as Decimal).digits !== 0n },
} as const
export type Cast = keyof typeof casts

/** Casts of values, and how the result compares with the column. */
export const valueCasts = {
  same: undefined,
  numeric: { sql: 'numeric', as: 'numeric' },
  bigint: { sql: 'bigint', as: 'numeric' },
  date: { sql: 'date', as: 'timestamp' },
} as const
export type ValueCast = keyof typeof valueCasts

export const KEY: Column = { name: '', kind: 'integer', nullable: false }
export const columnAt = (table: Table, at: number): Column =>
  at < 0 ? { ...KEY, name: table.key } : (table.columns[at] ?? KEY)
export const valueAt = (row: Row, at: number): Value | null =>
  at < 0 ? decimal(BigInt(row.key)) : (row.values[at] ?? null)

export const matches = (table: Table, row: Row, condition: Condition | undefined): boolean =>
  condition === undefined || truthOf(table, row, condition) === true

export function truthOf(table: Table, row: Row, condition: Condition): Truth {
  if (condition.kind === 'compare') return compare(table, row, condition)
  if (condition.kind === 'not') return not(truthOf(table, row, condition.term))
  const truths = condition.terms.map((term) => truthOf(table, row, term))
  return condition.kind === 'all' ? all(truths) : any(truths)
}

const not = (truth: Truth): Truth => (truth === undefined ? undefined : !truth)
const any = (truths: readonly Truth[]): Truth =>
  truths.includes(true) ? true : truths.includes(undefined) ? undefined : false
const all = (truths: readonly Truth[]): Truth => not(any(truths.map(not)))

function compare(
  table: Table,
  row: Row,
  { column, operator, operand, columnCast, valueCast }: Comparison,
): Truth {
  const own = kinds[columnAt(table, column).kind]
  const cast = columnCast && casts[columnCast]
  const kind: Kind = cast ? kinds[cast.to] : own
  const stored = valueAt(row, column)
  const left = stored === null ? null : cast ? cast.of(stored, own) : stored
  switch (operand.kind) {
    case 'word':
      return isWord(left, operand.word)
    case 'pattern':
      return left === null ? undefined : isLike(left as string, operand.pattern, operator === 'ilike')
    case 'search':
      return left === null ? undefined : isFound(left as string, operand.search)
    case 'list':
      return isAmong(left, operand.values, kind)
    case 'value':
      return related(left, operator, widened(operand.value, valueCast), kind)
  }
}

/** Only boolean columns are tested for truth. */
const isWord = (left: Value | null, word: string): boolean =>
  left === null ? word === 'null' || word === 'unknown' : word !== 'null' && String(left) === word

/** A date compared with a timestamp means its midnight. */
const widened = (value: Value | null, cast: ValueCast | undefined): Value | null =>
  cast === 'date' && value !== null ? startOf(value as Instant) : value

/** A null in the list matches nulls, as with eq. An empty list is false. */
function isAmong(left: Value | null, list: readonly (Value | null)[], kind: Kind): Truth {
  const truths = list.map((item): Truth => {
    if (item === null) return left === null
    return left === null ? undefined : kind.equal(left, item)
  })
  return any(truths)
}

function related(left: Value | null, operator: Operator, right: Value | null, kind: Kind): Truth {
  if (right === null && (operator === 'eq' || operator === 'neq'))
    return (left === null) === (operator === 'eq')
  if (left === null || right === null) return undefined
  switch (operator) {
    case 'eq':
      return kind.equal(left, right)
    case 'neq':
      return !kind.equal(left, right)
    case 'contains':
      return contains(left, right, kind)
    case 'containedBy':
      return contains(right, left, kind)
    case 'overlaps':
      return shares(left, right)
    default:
      return ordered(operator, kind.compare?.(left, right) ?? Number.NaN)
  }
}

function ordered(operator: Operator, order: number): boolean {
  const answers: Partial<Record<Operator, boolean>> = {
    gt: order > 0,
    gte: order >= 0,
    lt: order < 0,
    lte: order <= 0,
  }
  const answer = answers[operator]
  if (answer === undefined || Number.isNaN(order)) throw new Error(`unknown operator ${operator}`)
  return answer
}

/** Array elements as texts. A null never equals anything, not even another null. */
const elements = (value: Value): (string | null)[] =>
  (value as readonly (string | Decimal | null)[]).map((item) =>
    item === null || typeof item === 'string' ? item : String(item.digits),
  )

function contains(outer: Value, inner: Value, kind: Kind): boolean {
  if (kind === kinds.jsonb) return jsonContains(outer as JsonValue, inner as JsonValue)
  return elements(inner).every((item) => item !== null && elements(outer).includes(item))
}

const shares = (left: Value, right: Value): boolean =>
  elements(left).some((item) => item !== null && elements(right).includes(item))

/** Lower case in the C collation, which affects ASCII only. */
const folded = (character: string): string =>
  /^[A-Z]$/.test(character) ? character.toLowerCase() : character

export function isLike(text: string, pattern: readonly PatternPart[], ignoresCase: boolean): boolean {
  const fold = ignoresCase ? folded : (character: string) => character
  // Pattern positions that are reachable after the characters so far.
  let places = reach(new Set([0]), pattern)
  for (const character of text) {
    const next = new Set<number>()
    for (const place of places) {
      const part = pattern[place]
      if (part === undefined) continue
      if ('character' in part ? fold(part.character) === fold(character) : part.any === 'one')
        next.add(place + 1)
      else if ('any' in part && part.any === 'many') next.add(place)
    }
    places = reach(next, pattern)
  }
  return places.has(pattern.length)
}

/** Adds positions after `%`, which may match nothing. */
function reach(places: Set<number>, pattern: readonly PatternPart[]): Set<number> {
  for (const place of places) {
    const part = pattern[place]
    if (part !== undefined && 'any' in part && part.any === 'many') places.add(place + 1)
  }
  return places
}

/** Full-text search for texts of known words that no dictionary stems or drops. */
function isFound(text: string, search: Search): boolean {
  const words = text.toLowerCase().match(/[a-z]+/g) ?? []
  const follows = (wanted: readonly string[], at: number) =>
    wanted.every((word, offset) => words[at + offset] === word)
  return search.some((phrases) =>
    phrases.every((phrase) => words.some((_, at) => follows(phrase.words, at)) !== phrase.not),
  )
}

export type Sort = {
  readonly column: number
  readonly descending: boolean
  readonly nulls?: 'first' | 'last'
}

/** Nulls sort last in ascending order unless specified. */
export function sorted(table: Table, rows: readonly Row[], sorts: readonly Sort[]): Row[] {
  return [...rows].sort((left, right) => {
    for (const { column, descending, nulls } of sorts) {
      const [a, b] = [valueAt(left, column), valueAt(right, column)]
      if (a === null || b === null) {
        const order = Number(a === null) - Number(b === null)
        if (order !== 0) return (nulls ?? (descending ? 'first' : 'last')) === 'first' ? -order : order
        continue
      }
      const kind: Kind = kinds[columnAt(table, column).kind]
      const order = kind.compare?.(a, b) ?? 0
      if (order !== 0) return descending ? -order : order
    }
    return 0
  })
}
