import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { Failure } from '../../errors.ts'
import { edge } from '../failures.ts'
import { bodyText } from './body-text.ts'
import { collectBody } from './collect-body.ts'
import { hasEscapedKey, parseEscapedKeys } from './escaped-keys.ts'

/** Real data is not nested deeper, and recursive code could exhaust the stack. */
const DEPTH = 64

/** Reads JSON bodies in UTF-8, with the rules of `readJson`. An empty body counts as absent. */
export function readJsonBodies(app: FastifyInstance, parse: Parse): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', (request, payload, done) => {
    const refusal = encodingRefusal(request.headers)
    if (refusal !== undefined) return done(refusal)
    collectBody(request, payload, request.bodyLimit ?? request.routeOptions.bodyLimit, (error, bytes) => {
      if (error !== null) return done(error)
      if (bytes.length === 0) return done(null, undefined)
      if (!isUtf8(bytes)) return done(edge('invalid_text', { hint: 'The body is not UTF-8' }))
      // Before the parser takes the memory.
      const weigh = (values: number) => {
        requireFewValues(values, request.bodyValues)
        request.bodyHold?.settle(weightOf(bytes.length, values))
      }
      const { json, failure = null } = readJson(bodyText(bytes), parse, weigh)
      done(failure, json)
    })
  })
}

/** Keeps JSON bodies as the bytes that have arrived, in place of what they say. */
export function keepJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', (request, payload, done) => {
    collectBody(request, payload, request.routeOptions.bodyLimit, (error, bytes) => done(error, bytes))
  })
}

function requireFewValues(values: number, maximum = Number.POSITIVE_INFINITY): void {
  if (values <= maximum) return
  const details = { maximum_values: maximum }
  throw edge('payload_too_large', { hint: `At most ${maximum} values without a key`, details })
}

/** Bytes of memory for a JSON body: its text, the text of a statement, and its values. */
const weightOf = (length: number, values: number): number => 2 * length + VALUE_BYTES * values
/** Of a value besides its text. */
const VALUE_BYTES = 48

/** Bytes of a form: a token, a callback URL and two passwords. */
const FORM_LIMIT = 16_384

/** Also reads the forms of our own pages. Of a repeated name, the last value counts. */
export function readForms(app: FastifyInstance): void {
  app.addContentTypeParser('application/x-www-form-urlencoded', (request, payload, done) => {
    const refusal = encodingRefusal(request.headers)
    if (refusal !== undefined) return done(refusal)
    collectBody(request, payload, FORM_LIMIT, (error, bytes) => {
      if (error !== null) return done(error)
      // URLSearchParams replaces broken Unicode.
      const fields = [...new URLSearchParams(bytes.toString('utf8'))]
      const body = Object.fromEntries(fields)
      done(flawOf(body) ?? null, body)
    })
  })
}

/** Refuses compressed bodies and other charsets than UTF-8 (RFC 9110 section 15.5.16). */
export function encodingRefusal({
  'content-encoding': encoding = 'identity',
  'content-type': type = '',
}: IncomingHttpHeaders): Failure | undefined {
  if (encoding.toLowerCase() !== 'identity') {
    return edge('unsupported_media_type', {
      message: 'Send the body without a Content-Encoding',
      headers: { 'accept-encoding': 'identity' },
    })
  }
  // The most common value, checked first.
  if (type === 'application/json') return undefined
  return charsetsOf(type).every((charset) => charset === 'utf-8' || charset === 'us-ascii')
    ? undefined
    : edge('unsupported_media_type', { message: 'Send the body in UTF-8' })
}

const charsetsOf = (type: string): readonly string[] =>
  type
    .toLowerCase()
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part.startsWith('charset='))
    .map((part) => part.slice('charset='.length).replaceAll('"', ''))

type Parse = (text: string) => unknown

/**
 * JSON of a request: no prototype poisoning, no NUL and no lone surrogate (Postgres could store neither), bounded depth.
 * `parse` may keep more digits of numbers than `JSON.parse` does. `weigh` is called before with the number of values, and may throw a Failure.
 */
export function readJson(
  text: string,
  parse: Parse = JSON.parse,
  weigh: (values: number) => void = () => {},
): { readonly json?: unknown; readonly failure?: Failure } {
  // Before parsing: JSON.parse takes 200 ms for a megabyte of brackets, this takes 4 ms.
  const values = valuesIn(text)
  if (values === undefined) {
    return { failure: edge('invalid_json', { hint: `Nested deeper than ${DEPTH} levels` }) }
  }
  try {
    weigh(values)
    const json = hasEscapedKey(text) ? parseEscapedKeys(text, parse) : parse(text)
    // Valid UTF-8 contains a NUL or a lone surrogate only as an escape.
    const isSuspect = text.includes('\\u') || text.includes('__proto__')
    const failure = isSuspect ? flawOf(json) : undefined
    return failure === undefined ? { json } : { failure }
  } catch (error) {
    if (error instanceof Failure) return { failure: error }
    if (!(error instanceof SyntaxError)) throw error
    return { failure: edge('invalid_json', { hint: error.message }) }
  }
}

/** Upper bound of the number of values: brackets and commas outside of strings. Undefined when they are nested too deep. */
function valuesIn(text: string): number | undefined {
  let depth = 0
  let values = 1
  let isInText = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) isInText = !isInText
    else if (isInText) at += code === BACKSLASH ? 1 : 0
    else if (code === COMMA) values++
    else if (code === BRACKET || code === BRACE) {
      if (++depth > DEPTH) return undefined
      values++
    } else if (code === BRACKET + 2 || code === BRACE + 2) depth--
  }
  return values
}

/** The code of each closing bracket is that of the opening one + 2. */
const [BRACKET, BRACE] = [0x5b, 0x7b]
const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c]

const brokenText = (): Failure => edge('invalid_text', { hint: 'Remove \\u0000 and unpaired surrogates' })

const poisoned = (): Failure =>
  edge('invalid_text', {
    message: 'A member of the body is called __proto__',
    hint: 'Give the member another name',
  })

function flawOf(value: unknown): Failure | undefined {
  if (typeof value === 'string') return isCleanText(value) ? undefined : brokenText()
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, inner] of Object.entries(value)) {
    const flaw = key === '__proto__' ? poisoned() : (flawOf(key) ?? flawOf(inner))
    if (flaw !== undefined) return flaw
  }
  return undefined
}

export const isCleanText = (text: string): boolean => !text.includes('\0') && text.isWellFormed()
