/**
 * Cuts the JSON that a driver writes (an array of row objects) into rows and members without parsing a value, so that every
 * digit and every text stays as the database gave it. Between tokens of its own a driver writes no white space.
 */

/** The text of each row. */
export function rowTexts(json: string): string[] {
  const rows: string[] = []
  for (let at = 1; json.charCodeAt(at) === OPEN_BRACE; ) {
    const end = valueEnd(json, at)
    rows.push(json.slice(at, end))
    at = end + 1
  }
  return rows
}

/** JSON text by name, in the order of the row. */
export function membersOf(row: string): Map<string, string> {
  const members = new Map<string, string>()
  for (let at = 1; row.charCodeAt(at) === QUOTE; ) {
    const colon = textEnd(row, at)
    const end = valueEnd(row, colon + 1)
    // A column of type json may have white space around its value.
    members.set(JSON.parse(row.slice(at, colon)), row.slice(colon + 1, end).trim())
    at = end + 1
  }
  return members
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

/** Behind the closing quote of the text that begins here. */
function textEnd(json: string, from: number): number {
  for (let at = from + 1; ; at++) {
    const code = json.charCodeAt(at)
    if (code === QUOTE) return at + 1
    if (code === BACKSLASH) at++
    else if (Number.isNaN(code)) throw new Error('A driver wrote a text without an end')
  }
}

const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c]
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d]
