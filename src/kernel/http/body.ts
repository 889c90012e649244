import { isUtf8 } from 'node:buffer'
import type { FastifyInstance } from 'fastify'
import { edge } from './failures.ts'

/** Deeper JSON than this is nobody's data, and code that recurses over it would run out of stack. */
const DEPTH = 64

/**
 * Reads JSON bodies: UTF-8 only, no prototype poisoning, no NUL and no lone surrogate (Postgres could store neither),
 * bounded depth. An empty body is no body.
 */
export function readJsonBodies(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    // `parseAs: 'buffer'` hands over a Buffer.
    const bytes = body as Buffer
    if (bytes.length === 0) return done(null, undefined)
    if (!isUtf8(bytes)) return done(edge('invalid_text'))
    parse(request, bytes.toString('utf8'), (error: Error | null, value?: unknown) => {
      if (error !== null) return done(edge('invalid_json', { hint: error.message }))
      // Only an escape can bring a NUL or a lone surrogate into valid UTF-8.
      const problem = examine(value, bytes.includes('\\u'))
      done(problem === undefined ? null : edge(problem[0], { hint: problem[1] }), value)
    })
  })
}

type Problem = readonly ['invalid_text' | 'invalid_json', hint: string]

function examine(root: unknown, checkTexts: boolean): Problem | undefined {
  let level: object[] = typeof root === 'object' && root !== null ? [root] : []
  if (checkTexts && typeof root === 'string' && !isCleanText(root)) return BROKEN_TEXT
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > DEPTH) return ['invalid_json', `Nested deeper than ${DEPTH} levels`]
    const below: object[] = []
    for (const container of level) {
      if (checkTexts && !Array.isArray(container) && !Object.keys(container).every(isCleanText))
        return BROKEN_TEXT
      for (const item of Object.values(container)) {
        if (typeof item === 'object' && item !== null) below.push(item)
        else if (checkTexts && typeof item === 'string' && !isCleanText(item)) return BROKEN_TEXT
      }
    }
    level = below
  }
  return undefined
}

const BROKEN_TEXT: Problem = ['invalid_text', 'Remove \\u0000 and unpaired surrogates']

export const isCleanText = (text: string): boolean => !text.includes('\0') && text.isWellFormed()
