import type { DeclaredTypes, TypeUse } from '#databases/plan/declared-types.ts'

/** Types of columns as `pg` reads and takes them. `enums`: names of their types, by the name of the enum in a cast. */
export function createColumnTypes(
  { types }: DeclaredTypes,
  enums: ReadonlyMap<string, string>,
): (use: TypeUse) => string {
  const typeOf = ({ cast, base }: TypeUse): string => {
    const found = types.get(cast)
    if (found?.kind === 'domain') return typeOf(found.of)
    // `pg` reads neither composite types nor arrays of declared types: both are text.
    if (found !== undefined) return enums.get(cast) ?? 'string'
    return ARRAYS.get(base) ?? TYPES.get(base) ?? 'string'
  }
  return typeOf
}

const TYPES = new Map([
  ['bool', 'boolean'],
  ['bytea', 'Buffer'],
  ['circle', 'Circle'],
  ['date', 'Timestamp'],
  ['float4', 'number'],
  ['float8', 'number'],
  ['int2', 'number'],
  ['int4', 'number'],
  ['int8', 'Int8'],
  ['interval', 'Interval'],
  ['json', 'Json'],
  ['jsonb', 'Json'],
  ['numeric', 'Numeric'],
  ['oid', 'number'],
  ['point', 'Point'],
  ['timestamp', 'Timestamp'],
  ['timestamptz', 'Timestamp'],
])

/** Arrays that `pg` reads; others are text. */
const ARRAYS = new Map([
  ['_numeric', 'ColumnType<number[], (number | string)[], (number | string)[]>'],
  ...'bool bytea date float4 float8 int2 int4 int8 interval json jsonb oid point timestamp timestamptz'
    .split(' ')
    .map((base) => [`_${base}`, `ListOf<${TYPES.get(base)}>`] as const),
  ...'bpchar cidr inet macaddr money numrange text time timetz uuid varchar'
    .split(' ')
    .map((base) => [`_${base}`, 'string[]'] as const),
])
