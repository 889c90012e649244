import { createRequire } from 'node:module'
import { setImmediate } from 'node:timers/promises'
import type { ParseResult } from 'libpg-query'
import { openedOnce } from '#kernel/opened-once.ts'

/** The grammar does not accept the text. The message is PostgreSQL's own. */
export class SyntaxFailure extends Error {}
/** The text is nested deeper than the parser can follow. */
export class DepthFailure extends Error {}

/**
 * Parses SQL with PostgreSQL's own grammar (docs/decisions/0012-libpg-query.md). Not by the functions of the package: they keep one
 * instance for the life of the process, and a text that exhausts its stack (`1+1+1…`, 20 kB) leaves the instance unusable after some
 * repetitions. Such an instance is replaced here.
 *
 * Parsing blocks the process: 1,000 characters for 1 ms. Other work has its turn before each text, so many texts of one request are parsed
 * one after another.
 */
export async function parse(text: string): Promise<ParseResult> {
  await setImmediate()
  const load = current
  const parser = await load()
  // Another text has just broken it.
  if (load !== current) return parse(text)
  try {
    return parseWith(parser, text)
  } catch (error) {
    if (error instanceof SyntaxFailure) throw error
    current = loader()
    throw new DepthFailure('The text is nested too deep', { cause: error })
  }
}

/** The functions used of the package's WebAssembly module. Structs are read as in `libpg-query/wasm/index.js`. */
type Parser = {
  lengthBytesUTF8(text: string): number
  stringToUTF8(text: string, at: number, length: number): void
  UTF8ToString(at: number): string
  getValue(at: number, type: 'i32'): number
  _malloc(length: number): number
  _free(at: number): void
  _wasm_parse_query_raw(at: number): number
  _wasm_free_parse_result(at: number): void
}

/** Loaded with the first text: a parser takes 5 MB. */
const loader = () =>
  openedOnce(async (): Promise<Parser> => {
    const create: () => Promise<Parser> = createRequire(import.meta.url)('libpg-query/wasm/libpg-query.js')
    return create()
  }).get

let current = loader()

function parseWith(parser: Parser, text: string): ParseResult {
  const length = parser.lengthBytesUTF8(text) + 1
  const given = parser._malloc(length)
  parser.stringToUTF8(text, given, length)
  const result = parser._wasm_parse_query_raw(given)
  const pointer = (at: number) => parser.getValue(at, 'i32')
  const error = pointer(result + 8)
  // Copied before the memory is freed. Nothing is freed after an exception: the parser is replaced.
  const [tree, message] =
    error === 0 ? [parser.UTF8ToString(pointer(result))] : ['', parser.UTF8ToString(pointer(error))]
  parser._free(given)
  parser._wasm_free_parse_result(result)
  if (message !== undefined) throw new SyntaxFailure(message)
  return JSON.parse(tree)
}
