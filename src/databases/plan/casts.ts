import { fail } from '#databases/failures.ts'
import { FURTHER_TYPES, NUMBER_TYPES, SYSTEM_NAMES, TYPE_ALIASES } from '#databases/plan/data-types.ts'

/** The type of a cast in the database's spelling. Only types of this list reach a statement. */
export function castOf(name: string): string {
  const array = name.endsWith('[]')
  const plain = (array ? name.slice(0, -2) : name).trim().toLowerCase()
  const type = Object.hasOwn(ALIASES, plain) ? ALIASES[plain] : CAST_TYPES.find((known) => known === plain)
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
  return `pg_catalog.${Object.hasOwn(CATALOGUE_NAMES, plain) ? CATALOGUE_NAMES[plain] : plain}${array ? '[]' : ''}`
}

const CATALOGUE_NAMES: Readonly<Record<string, string>> = SYSTEM_NAMES

const CAST_TYPES = ['text', ...NUMBER_TYPES, 'boolean', 'date', 'time', ...FURTHER_TYPES] as const

const ALIASES: Readonly<Record<string, (typeof CAST_TYPES)[number]>> = {
  ...TYPE_ALIASES,
  varchar: 'text',
  'character varying': 'text',
}
