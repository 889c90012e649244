import { textOf } from '../../values.js'
import { exampleOf } from './document.js'

/** @typedef {import('./document.js').ApiDocument} ApiDocument @typedef {import('./document.js').Operation} Operation @typedef {import('./document.js').Parameter} Parameter */

/** @param {Parameter} parameter */
export const keyOf = (parameter) => `${parameter.in} ${parameter.name}`

/** @param {Parameter} parameter */
export const namesClient = ({ name }) => ['x-service-client', 'client_name'].includes(name.toLowerCase())

/** What the fields begin with: examples of what is required, and the client. @param {ApiDocument} document @param {Operation} operation @param {string} client */
export const valuesOf = (document, { parameters }, client) =>
  Object.fromEntries(
    parameters.map((one) => {
      const example = one.example ?? exampleOf(document, one.schema)
      const value = namesClient(one) && one.required === true ? client : example
      return [keyOf(one), one.required === true ? String(value ?? '') : '']
    }),
  )

/** Bodies to begin with, as they are documented, or made from the schema. @param {ApiDocument} document @param {Operation} operation @param {string} client @returns {readonly string[]} */
export function bodiesOf(document, { body }, client) {
  const [[type, content] = ['', undefined]] = Object.entries(body ?? {})
  if (content === undefined) return []
  const given = Object.values(content.examples ?? {}).map(({ value }) => value)
  const examples = given.length > 0 ? given : [exampleOf(document, content.schema)]
  return examples.map((one) => written(withClient(one, client), type))
}

/** @param {any} body @param {string} type of its content */
function written(body, type) {
  if (type === 'application/json') return JSON.stringify(body, null, 2)
  if (type !== 'application/x-www-form-urlencoded') return textOf(body)
  return String(new URLSearchParams(Object.entries(body).map(([name, value]) => [name, textOf(value)])))
}

/** @param {unknown} body @param {string} client */
const withClient = (body, client) =>
  typeof body === 'object' && body !== null && 'client_name' in body ? { ...body, client_name: client } : body

/**
 * The request that the fields say.
 * @param {Operation} operation
 * @param {Readonly<Record<string, string>>} values
 * @param {string | undefined} text
 */
export function requestOf({ method, path, parameters, body }, values, text) {
  const given = parameters
    .map((one) => ({ ...one, value: values[keyOf(one)] ?? '' }))
    .filter(({ value }) => value !== '')
  const of = (/** @type {string} */ place) =>
    given.filter((one) => one.in === place).map(({ name, value }) => /** @type {const} */ ([name, value]))
  const filled = of('path').reduce(
    (so, [name, value]) => so.replace(`{${name}}`, () => encodeURIComponent(value)),
    path,
  )
  const search = new URLSearchParams(of('query').map(([name, value]) => [name, value])).toString()
  const [type] = Object.keys(body ?? {})
  return {
    method,
    address: search === '' ? filled : `${filled}?${search}`,
    headers: {
      ...Object.fromEntries(of('header')),
      ...(text !== undefined && type !== undefined && { 'content-type': type }),
    },
    text,
  }
}

/** The header of curl for the credential that the operation takes. @param {Operation} operation */
export function placeholderFor({ security }) {
  const schemes = security.flatMap((one) => Object.keys(one))
  if (schemes.some((name) => ['apiKey', 'adminKey'].includes(name))) return 'apikey: $KEY'
  return schemes.includes('sessionToken') ? 'authorization: Bearer $TOKEN' : undefined
}
