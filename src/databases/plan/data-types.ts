/** Data types by their names in requests. */
export const NUMBER_TYPES = ['smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision'] as const

export const FURTHER_TYPES = [
  'timestamp',
  'timestamptz',
  'interval',
  'uuid',
  'json',
  'jsonb',
  'bytea',
  'inet',
  'cidr',
  'macaddr',
  'tsvector',
] as const

/** Other names that requests may use. */
export const TYPE_ALIASES = {
  string: 'text',
  int: 'integer',
  int2: 'smallint',
  int4: 'integer',
  int8: 'bigint',
  decimal: 'numeric',
  float: 'double precision',
  float4: 'real',
  float8: 'double precision',
  bool: 'boolean',
  'timestamp without time zone': 'timestamp',
  'timestamp with time zone': 'timestamptz',
} as const

/** Names in pg_catalog, where they differ. */
export const SYSTEM_NAMES = {
  smallint: 'int2',
  integer: 'int4',
  bigint: 'int8',
  real: 'float4',
  'double precision': 'float8',
  boolean: 'bool',
} as const
