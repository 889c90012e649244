import { closestName } from '../closest-name.ts'
import { PARSED } from './schemas.ts'

/** The keywords of JSON Schema that say which members there are. */
export type Members = {
  readonly properties?: Readonly<Record<string, Members>>
  readonly items?: Members
  readonly additionalProperties?: unknown
  readonly [PARSED]?: boolean
}

type Unknown = { readonly path: string; readonly name: string; readonly known: readonly string[] }

/** Unknown members of a body that are compared with known names. A comparison takes some microseconds. */
const MAX_COMPARED = 100

/**
 * The first unknown member that is probably a misspelt one. The others are ignored, but without this one the rest could mean far more: a
 * public route with `condition` would open every row. A body that its verb parses has checks of its own.
 */
export function misspeltMember(schema: Members, body: unknown): { path: string; meant: string } | undefined {
  let compared = 0
  for (const { path, name, known } of unknownMembers(schema, body, '')) {
    if (compared++ === MAX_COMPARED) return undefined
    const meant = closestName(name, known) ?? known.find((one) => isPartOf(name, one))
    if (meant !== undefined) return { path, meant }
  }
  return undefined
}

/** `client` for `client_name`, `active` for `is_active`. */
const isPartOf = (name: string, known: string): boolean =>
  known.startsWith(`${name}_`) || known === `is_${name}`

function* unknownMembers(shape: Members, value: unknown, path: string): Generator<Unknown> {
  if (shape[PARSED] === true || typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    const { items } = shape
    if (items !== undefined)
      for (const [index, item] of value.entries()) yield* unknownMembers(items, item, `${path}${index}.`)
    return
  }
  const { properties, additionalProperties = false } = shape
  if (properties === undefined) return
  for (const [name, member] of Object.entries(value)) {
    const inner = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (inner !== undefined) yield* unknownMembers(inner, member, `${path}${name}.`)
    else if (additionalProperties === false)
      yield { path: `${path}${name}`, name, known: Object.keys(properties) }
  }
}
