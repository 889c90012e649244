import { fail } from '#databases/failures.ts'

/** The type of a cast in the database's spelling. Only types of this list reach a statement. */
export function castOf(name: string): string {
  const array = name.endsWith('[]')
  const plain = (array ? name.slice(0, -2) : name).trim().toLowerCase()
  const type = Object.hasOwn(TYPE_ALIASES, plain)
    ? TYPE_ALIASES[plain]
    : CAST_TYPES.find((known) => known === plain)
  if (type !== undefined) return array ? `${type}[]` : type
  throw fail('invalid_cast', {
    message: `${name.slice(0, 100)} is not a type to cast to`,
    details: { cast: name.slice(0, 100), allowed: CAST_TYPES },
  })
}

/**
 * The cast with its schema, because the client's database may have a type of the same name. Types whose name is grammar (`double
 * precision`) have another name in pg_catalog.
 */
export function castText(cast: string): string {
  const array = cast.endsWith('[]')
  const plain = array ? cast.slice(0, -2) : cast
  return `pg_catalog.${Object.hasOwn(SYSTEM_NAMES, plain) ? SYSTEM_NAMES[plain] : plain}${array ? '[]' : ''}`
}

const SYSTEM_NAMES: Readonly<Record<string, string>> = {
  smallint: 'int2',
  integer: 'int4',
  bigint: 'int8',
  real: 'float4',
  'double precision': 'float8',
  boolean: 'bool',
}

const CAST_TYPES = [
  'text',
  'smallint',
  'integer',
  'bigint',
  'numeric',
  'real',
  'double precision',
  'boolean',
  'date',
  'time',
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

const TYPE_ALIASES: Readonly<Record<string, (typeof CAST_TYPES)[number]>> = {
  string: 'text',
  varchar: 'text',
  'character varying': 'text',
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
}
