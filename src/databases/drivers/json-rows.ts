/**
 * Splits the JSON of a driver (an array of row objects) into rows and members without parsing values, so that every digit and text stays as
 * the database wrote it.
 */

/** The text of each row. */
export const rowTexts = (json: string): string[] => [...eachRow(json)]

/** Yields the text of each row: splitting many at once would block the process. */
export function* eachRow(json: string): Generator<string> {
  let at = past(json, 1)
  while (json.charCodeAt(at) === OPEN_BRACE) {
    const end = valueEnd(json, at)
    yield json.slice(at, end).trimEnd()
    at = past(json, end + 1)
  }
  // After the last row, past the closing bracket, or at the closing bracket of an empty list.
  if (json.charCodeAt(0) !== OPEN_BRACKET || (at < json.length && json.charCodeAt(at) !== CLOSE_BRACKET))
    throw new NotRows()
}

/** The JSON is not an array of objects. */
export class NotRows extends Error {}

/** The JSON text of each member by name, in the order of the row. */
export const membersOf = (row: string): Map<string, string> => new Map(eachMember(row))

/** Yields name and JSON text of each member. */
export function* eachMember(row: string): Generator<readonly [name: string, json: string]> {
  for (let at = past(row, 1); row.charCodeAt(at) === QUOTE; ) {
    const name = textEnd(row, at)
    const colon = past(row, name)
    const end = valueEnd(row, colon + 1)
    yield [JSON.parse(row.slice(at, name)), row.slice(colon + 1, end).trim()]
    at = past(row, end + 1)
  }
}

/** Names of the members that are a JSON null, which `Driver.stream` writes with a tab before it. */
export function* jsonNulls(row: string): Generator<string> {
  for (let at = past(row, 1); row.charCodeAt(at) === QUOTE; ) {
    const name = textEnd(row, at)
    const from = past(row, name) + 1
    const end = valueEnd(row, from)
    if (row.charCodeAt(from) === TAB && row.slice(from, end).trim() === 'null')
      yield JSON.parse(row.slice(at, name))
    at = past(row, end + 1)
  }
}

/** The end of the value that begins at `from`: the comma or bracket after it. */
function valueEnd(json: string, from: number): number {
  let depth = 0
  for (let at = from; at < json.length; at++) {
    const code = json.charCodeAt(at)
    if (code === QUOTE) at = textEnd(json, at) - 1
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      if (depth === 0) return at
      depth--
    } else if (code === COMMA && depth === 0) return at
  }
  return json.length
}

/** The position after white space. Databases write some between rows, and values of type json may contain any. */
function past(json: string, from: number): number {
  let at = from
  while (SPACE.has(json.charCodeAt(at))) at++
  return at
}

/** The position after the closing quote of the text that begins at `from`. */
function textEnd(json: string, from: number): number {
  for (let at = from + 1; ; at++) {
    const code = json.charCodeAt(at)
    if (code === QUOTE) return at + 1
    if (code === BACKSLASH) at++
    else if (Number.isNaN(code)) throw new Error('A driver wrote a text without a closing quote')
  }
}

const SPACE: ReadonlySet<number> = new Set([0x20, 0x0a, 0x0d, 0x09])
const [TAB, QUOTE, COMMA, BACKSLASH] = [0x09, 0x22, 0x2c, 0x5c]
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d]
