/** How int8 and numeric are typed: as numbers, or with a bigint and a text where a number would lose digits. */
export type Numbers = 'number' | 'exact'

/** Types of the JSON that rows.ts writes. NaN and infinity are written as text, which the type ignores. */
export const scalarType = (base: string, numbers: Numbers): string =>
  (numbers === 'exact' ? EXACT.get(base) : undefined) ?? TYPE_OF_BASE.get(base) ?? 'string'

/** The elements of an array; undefined where the name of the array does not show whether they are composite. */
export const elementType = (arrayBase: string, numbers: Numbers): string | undefined => {
  const base = arrayBase.slice(1)
  return TYPE_OF_BASE.has(base) || TEXT_BASES.has(base) ? scalarType(base, numbers) : undefined
}

const TYPE_OF_BASE = new Map([
  ...['int2', 'int4', 'int8', 'oid', 'float4', 'float8', 'numeric'].map((name) => [name, 'number'] as const),
  ['bool', 'boolean'],
  ['json', 'Json'],
  ['jsonb', 'Json'],
])

/** A reader of JSON sees whether a number has lost digits, and not the type of its column. In parentheses for lists. */
const EXACT = new Map([
  ['int8', '(number | bigint)'],
  ['numeric', '(number | bigint | string)'],
])

const TEXT_BASES = new Set(
  'text varchar bpchar name uuid date time timetz timestamp timestamptz interval bytea inet cidr citext'.split(
    ' ',
  ),
)
