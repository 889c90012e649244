import { meantMember } from '../../closest-name.ts'
import { EXACT } from '../schemas.ts'

/** The keywords of JSON Schema that say which members there are. */
type Shape = {
  readonly properties?: Readonly<Record<string, Shape>>
  readonly items?: Shape
  readonly anyOf?: readonly Shape[]
  readonly additionalProperties?: unknown
  readonly patternProperties?: object
  readonly [EXACT]?: boolean
}

/** Finds the first member of a body that is probably a misspelt one. */
type FindMisspelt = (body: unknown) => { readonly path: string; readonly meant: string } | undefined

/**
 * Unknown members are ignored, but without the misspelt one the rest could mean far more: a read with `condition` would return all rows.
 * The schema is the documented one, also of a body that its verb parses. Members of rows and arguments have no names in it.
 */
export function misspeltIn(schema: object): FindMisspelt {
  const members = membersOf([schema])
  return members === undefined ? () => undefined : (body) => firstMisspelt(members, body)
}

/** The members of an object by name, and those of the items of a list; undefined where any name is possible. */
type Members = {
  readonly byName: ReadonlyMap<string, Members | undefined> | undefined
  readonly ofItems: Members | undefined
}

function membersOf(given: readonly Shape[]): Members | undefined {
  const shapes = given.flatMap(alternatives)
  const isClosed = shapes.every(isClosedShape)
  const properties = isClosed ? shapes.flatMap(({ properties = {} }) => Object.entries(properties)) : []
  const byName = new Map(
    [...Map.groupBy(properties, ([name]) => name)].map(([name, same]) => [
      name,
      membersOf(same.map(([, shape]) => shape)),
    ]),
  )
  const items = shapes.flatMap(({ items }) => (items === undefined ? [] : [items]))
  const ofItems = items.length > 0 ? membersOf(items) : undefined
  return byName.size === 0 && ofItems === undefined
    ? undefined
    : { byName: byName.size === 0 ? undefined : byName, ofItems }
}

const isClosedShape = ({ additionalProperties = false, patternProperties }: Shape): boolean =>
  additionalProperties === false && patternProperties === undefined

const alternatives = (shape: Shape): readonly Shape[] =>
  shape[EXACT] === true ? [] : shape.anyOf === undefined ? [shape] : shape.anyOf.flatMap(alternatives)

/** Unknown members of a body that are compared with known names. A comparison takes some microseconds. */
const MAX_COMPARED = 100

function firstMisspelt(members: Members, body: unknown): ReturnType<FindMisspelt> {
  let compared = 0
  for (const { path, name, known } of unknownMembers(members, body, '')) {
    if (compared++ === MAX_COMPARED) return undefined
    const meant = meantMember(name, [...known])
    if (meant !== undefined) return { path, meant }
  }
  return undefined
}

type UnknownMember = { readonly path: string; readonly name: string; readonly known: Iterable<string> }

function* unknownMembers(
  { byName, ofItems }: Members,
  value: unknown,
  path: string,
): Generator<UnknownMember> {
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return
  if (Array.isArray(value)) {
    if (ofItems === undefined) return
    for (const [index, item] of value.entries()) yield* unknownMembers(ofItems, item, `${path}${index}.`)
    return
  }
  if (byName === undefined) return
  for (const name of Object.keys(value)) {
    if (!byName.has(name)) yield { path: `${path}${name}`, name, known: byName.keys() }
    const inner = byName.get(name)
    // A parsed body: a plain object.
    if (inner !== undefined)
      yield* unknownMembers(inner, (value as Record<string, unknown>)[name], `${path}${name}.`)
  }
}
