import { isUtf8 } from 'node:buffer'
import type { FastifyInstance } from 'fastify'
import type { Failure } from '../errors.ts'
import { edge } from './failures.ts'

/** Deeper JSON than this is nobody's data, and code that recurses over it would run out of stack. */
const DEPTH = 64

/**
 * Reads JSON bodies: UTF-8 only, no prototype poisoning, no NUL and no lone surrogate (Postgres could store neither),
 * bounded depth. An empty body is no body. `parse` may keep more of numbers than `JSON.parse` does.
 */
export function readJsonBodies(app: FastifyInstance, parse: (text: string) => unknown): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    // `parseAs: 'buffer'` hands over a Buffer.
    const bytes = body as Buffer
    if (bytes.length === 0) return done(null, undefined)
    if (!isUtf8(bytes)) return done(edge('invalid_text', { hint: 'The body is not UTF-8' }))
    const value = parsed(bytes, parse)
    // Only an escape can bring a NUL or a lone surrogate into valid UTF-8.
    const problem = value.failure ?? examine(value.json, bytes.includes('\\u') || bytes.includes('__proto__'))
    done(problem ?? null, value.json)
  })
}

function parsed(bytes: Buffer, parse: (text: string) => unknown): { json?: unknown; failure?: Failure } {
  try {
    return { json: parse(bytes.toString('utf8')) }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return { failure: edge('invalid_json', { hint: error.message }) }
  }
}

/** Depth always; texts and keys only where they can be unclean. Level by level, so that depth costs no stack. */
function examine(root: unknown, checkTexts: boolean): Failure | undefined {
  let level: readonly unknown[] = [root]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > DEPTH) return edge('invalid_json', { hint: `Nested deeper than ${DEPTH} levels` })
    const below: unknown[] = []
    for (const item of level) {
      if (typeof item === 'object' && item !== null) {
        if (checkTexts && !Object.keys(item).every(isCleanKey)) return brokenText()
        for (const inner of Object.values(item))
          if (checkTexts || typeof inner === 'object') below.push(inner)
      } else if (typeof item === 'string' && checkTexts && !isCleanText(item)) return brokenText()
    }
    level = below
  }
  return undefined
}

const brokenText = (): Failure =>
  edge('invalid_text', { hint: 'Remove \\u0000, unpaired surrogates and __proto__' })

const isCleanKey = (key: string): boolean => key !== '__proto__' && isCleanText(key)

export const isCleanText = (text: string): boolean => !text.includes('\0') && text.isWellFormed()
