import type { RouteOptions } from 'fastify'
import { fieldsOf } from '#identity/custom-fields.ts'
import type { Config } from '#kernel/config/config.ts'
import { type CustomField, fieldValue } from '#kernel/field-values.ts'
import { isNamedAs } from '#kernel/http/document/components.ts'
import type { App } from '#kernel/http/surface.ts'
import { outputSchema } from './bodies.ts'

/**
 * Adds the custom fields to every user in an answer, by the schema of the answer, so that no route can forget them. Without a field that
 * is returned, nothing is done at a request.
 */
export function answerCustomFields(app: App, { auth }: Config): void {
  const shown = Object.entries(auth.user.fields).filter(([, { returned }]) => returned)
  if (shown.length === 0) return
  app.addHook('onRoute', (route) => {
    const response = route.schema?.response as { 200?: unknown } | undefined // of this surface: schemas by status
    const found = withOutputs(response?.[200], shown)
    if (response === undefined || found === undefined) return
    const { schema, places } = found
    route.schema = { ...route.schema, response: { ...response, 200: schema } }
    route.preSerialization = [
      ...hooksOf(route),
      function addFields(_request, reply, payload, done) {
        // A failure has another schema.
        const changed = reply.statusCode === 200 ? places : []
        done(
          null,
          changed.reduce((answer, place) => addedAt(answer, place, shown), payload),
        )
      },
    ]
  })
}

const hooksOf = ({ preSerialization: hooks }: RouteOptions) => (hooks === undefined ? [] : [hooks].flat())

type Shown = readonly (readonly [name: string, field: CustomField])[]

/** From the answer to a user: names of members, and `*` for each item of a list. */
type Place = readonly string[]

type Shape = {
  readonly properties?: Readonly<Record<string, Shape>>
  readonly items?: Shape
  readonly required?: readonly string[]
}

/** The schema with the fields in each user, and the places of these; undefined when it has none. */
function withOutputs(
  schema: unknown,
  shown: Shown,
): { readonly schema: Shape; readonly places: readonly Place[] } | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined
  if (USERS.some((name) => isNamedAs(schema, name)))
    return { schema: { ...schema, ...userShape(schema, shown) }, places: [[]] }
  const { properties, items, ...rest }: Shape = schema
  const item = withOutputs(items, shown)
  if (item !== undefined)
    return { schema: { ...rest, items: item.schema }, places: item.places.map((place) => ['*', ...place]) }
  const members = Object.entries(properties ?? {}).map(
    ([name, member]) => [name, member, withOutputs(member, shown)] as const,
  )
  const places = members.flatMap(([name, , found]) => (found?.places ?? []).map((place) => [name, ...place]))
  if (places.length === 0) return undefined
  const changed = Object.fromEntries(members.map(([name, member, found]) => [name, found?.schema ?? member]))
  return { schema: { ...rest, properties: changed }, places }
}

/** Components of users (identity/schemas.ts). */
const USERS = ['User', 'FullUser']

const userShape = ({ properties, required = [] }: Shape, shown: Shown): Shape => ({
  properties: {
    ...properties,
    ...Object.fromEntries(shown.map(([name, field]) => [name, outputSchema(field) as Shape])),
  },
  required: [...new Set([...required, ...shown.map(([name]) => name)])],
})

/** Copies what it changes: the answer may be in a cache. */
function addedAt(value: unknown, [step, ...rest]: Place, shown: Shown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (step === undefined) return withValues(value, shown)
  if (step === '*') return Array.isArray(value) ? value.map((item) => addedAt(item, rest, shown)) : value
  // A member of an answer.
  const member = (value as Readonly<Record<string, unknown>>)[step]
  return member === undefined ? value : { ...value, [step]: addedAt(member, rest, shown) }
}

function withValues(user: object, shown: Shown): object {
  // The schema says that it is a user.
  const fields = fieldsOf(user as { readonly fields: unknown })
  const values = shown.map(([name, field]) => [name, fieldValue(field, fields[name]) ?? null])
  return { ...user, ...Object.fromEntries(values) }
}
