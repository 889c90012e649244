/**
 * Cuts the JSON that a driver writes (an array of row objects) into rows and members without parsing a value, so that every
 * digit and every text stays as the database gave it.
 */

/** The text of each row. */
export const rowTexts = (json: string): string[] => [...eachRow(json)]

/** One by one: many of them take long. */
export function* eachRow(json: string): Generator<string> {
  let at = past(json, 1)
  while (json.charCodeAt(at) === OPEN_BRACE) {
    const end = valueEnd(json, at)
    yield json.slice(at, end).trimEnd()
    at = past(json, end + 1)
  }
  // Behind the last row, past the closing bracket, or at that of an empty list.
  if (json.charCodeAt(0) !== OPEN_BRACKET || (at < json.length && json.charCodeAt(at) !== CLOSE_BRACKET))
    throw new NotRows()
}

/** JSON that is no array of objects. */
export class NotRows extends Error {}

/** JSON text by name, in the order of the row. */
export const membersOf = (row: string): Map<string, string> => new Map(eachMember(row))

/** One by one. */
export function* eachMember(row: string): Generator<readonly [name: string, json: string]> {
  for (let at = past(row, 1); row.charCodeAt(at) === QUOTE; ) {
    const name = textEnd(row, at)
    const colon = past(row, name)
    const end = valueEnd(row, colon + 1)
    yield [JSON.parse(row.slice(at, name)), row.slice(colon + 1, end).trim()]
    at = past(row, end + 1)
  }
}

/** Where the value that begins here ends: at the comma or bracket behind it. */
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

/** Past white space: a database writes some between rows, and there may be any inside of a column of type json. */
function past(json: string, from: number): number {
  let at = from
  while (SPACE.has(json.charCodeAt(at))) at++
  return at
}

/** Behind the closing quote of the text that begins here. */
function textEnd(json: string, from: number): number {
  for (let at = from + 1; ; at++) {
    const code = json.charCodeAt(at)
    if (code === QUOTE) return at + 1
    if (code === BACKSLASH) at++
    else if (Number.isNaN(code)) throw new Error('A driver wrote a text without an end')
  }
}

const SPACE: ReadonlySet<number> = new Set([0x20, 0x0a, 0x0d, 0x09])
const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c]
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d]
