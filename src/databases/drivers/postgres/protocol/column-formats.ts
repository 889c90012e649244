/** How the text of a column's values becomes JSON or a cell of CSV. A relation is JSON with one row per line. */
export const FORMAT = {
  text: 0,
  raw: 1,
  bool: 2,
  real: 3,
  timestamp: 4,
  instant: 5,
  json: 6,
  relation: 7,
} as const
export type Format = (typeof FORMAT)[keyof typeof FORMAT]

export const formatOf = (oid: number): Format => BY_OID.get(oid) ?? FORMAT.text

/** By type OID; other types are text. The numbers are fixed in PostgreSQL's pg_type.dat. */
const BY_OID = new Map<number, Format>([
  [16, FORMAT.bool],
  [20, FORMAT.raw], // int8
  [21, FORMAT.raw], // int2
  [23, FORMAT.raw], // int4
  [26, FORMAT.raw], // oid
  [114, FORMAT.json],
  [3802, FORMAT.json], // jsonb
  [700, FORMAT.real], // float4
  [701, FORMAT.real], // float8
  [1700, FORMAT.real], // numeric
  [1114, FORMAT.timestamp],
  [1184, FORMAT.instant], // timestamptz
])
