import { call } from '../../api.js'

/**
 * @typedef {Readonly<Record<string, any>>} Schema a JSON schema of the document
 * @typedef {{ name: string, in: 'path' | 'query' | 'header', required?: boolean, description?: string, example?: unknown, schema: Schema }} Parameter
 * @typedef {{ id: string, method: string, path: string, tag: string, summary: string, description: string, parameters: readonly Parameter[],
 *   security: readonly Readonly<Record<string, unknown>>[], body: Readonly<Record<string, { schema: Schema, examples?: Readonly<Record<string, { value: unknown }>> }>> | undefined,
 *   responses: Readonly<Record<string, any>> }} Operation
 * @typedef {{ operations: readonly Operation[], tags: readonly { name: string, description: string }[], components: Readonly<Record<string, any>> }} ApiDocument
 */

/** The same for everybody, and large: it is read once a page. @type {Promise<ApiDocument> | undefined} */
let loading

/** The service's own description of its API. */
export function loadDocument() {
  loading ??= call('/openapi.json').then(indexed)
  loading.catch(() => {
    loading = undefined
  })
  return loading
}

/** @param {any} document @returns {ApiDocument} */
function indexed({ paths, tags, components }) {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => ({
      id: one.operationId,
      method: method.toUpperCase(),
      path,
      tag: one.tags?.[0] ?? '',
      summary: one.summary ?? one.operationId,
      description: one.description ?? '',
      parameters: (one.parameters ?? []).filter(isNoAlias),
      security: one.security ?? [],
      body: one.requestBody?.content,
      responses: one.responses ?? {},
    })),
  )
  return { operations, tags, components }
}

/** Further names of members and parameters are for callers who know them. @param {{ schema: Schema }} parameter */
const isNoAlias = ({ schema }) => schema['x-alias-of'] === undefined

/** What the reference leads to, with what is said beside it. @param {ApiDocument} document @param {Schema} of @returns {Schema} */
export function resolved(document, of) {
  if (typeof of.$ref !== 'string') return of
  const [, , kind = '', name = ''] = of.$ref.split('/')
  const { $ref: _ref, ...beside } = of
  return { ...resolved(document, document.components[kind]?.[name] ?? {}), ...beside }
}

/** “string, date-time”. @param {ApiDocument} document @param {Schema} of @returns {string} */
export function typeOf(document, of) {
  const schema = resolved(document, of)
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum !== undefined)
    return schema.enum.map((/** @type {unknown} */ one) => JSON.stringify(one)).join(' | ')
  const several = schema.anyOf ?? schema.oneOf
  if (several !== undefined)
    return [...new Set(several.map((/** @type {Schema} */ one) => typeOf(document, one)))].join(' | ')
  if (schema.type === 'array') return `list of ${typeOf(document, schema.items ?? {})}`
  const type = [schema.type ?? 'anything'].flat().join(' | ')
  return schema.format === undefined ? type : `${type}, ${schema.format}`
}

/** Whether it changes nothing, so that nobody has to be asked. @param {Operation} operation */
export const isRead = ({ method, id }) =>
  method === 'GET' || /^(fetch|count|list|find|has|is|resolve)[A-Z]/.test(id)

/** @type {Readonly<Record<string, unknown>>} */
const BY_FORMAT = {
  'date-time': '2030-01-01T00:00:00Z',
  uuid: '01900000-0000-7000-8000-000000000000',
  email: 'ada@example.com',
  uri: 'https://example.com',
}

/** A value that fits: the documented one, or the least. @param {ApiDocument} document @param {Schema} of @param {number} [depth] @returns {unknown} */
export function exampleOf(document, of, depth = 0) {
  const schema = resolved(document, of)
  const given = schema.examples?.[0] ?? schema.example ?? schema.default ?? schema.const ?? schema.enum?.[0]
  if (given !== undefined) return given
  const [first] = schema.anyOf ?? schema.oneOf ?? []
  if (first !== undefined) return exampleOf(document, first, depth)
  const [type] = [schema.type].flat()
  if (type === 'object') return exampleOfMembers(document, schema, depth)
  if (type === 'array')
    return depth > 4 || schema.items === undefined ? [] : [exampleOf(document, schema.items, depth + 1)]
  if (type === 'integer' || type === 'number') return schema.minimum ?? 1
  if (type === 'boolean') return true
  return type === 'string' ? (BY_FORMAT[schema.format] ?? 'text') : null
}

/** What is required, and what has an example. @param {ApiDocument} document @param {Schema} schema @param {number} depth */
function exampleOfMembers(document, { properties = {}, required = [] }, depth) {
  const shown = Object.entries(properties).filter(
    ([name, one]) =>
      required.includes(name) || (depth === 0 && resolved(document, one).examples !== undefined),
  )
  return Object.fromEntries(shown.map(([name, one]) => [name, exampleOf(document, one, depth + 1)]))
}
