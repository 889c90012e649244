/**
 * V8 may read the key `"a\n"` as `a\` when any request before had a key `a\` after the same members
 * (https://github.com/nodejs/node/issues/63785): one caller could change the requests of others. It reads keys without escapes
 * correctly; so in a text with such a key all keys are numbered, and get their names back after parsing.
 */
export function parseEscapedKeys(text: string, parse: (text: string) => unknown): unknown {
  const names: string[] = []
  let numbered = ''
  let copied = 0
  for (let start = text.indexOf('"'); start >= 0; ) {
    const end = endOfString(text, start)
    if (followsColon(text, end)) {
      numbered += `${text.slice(copied, start)}"${names.length}"`
      copied = end
      const key = text.slice(start, end)
      names.push(key.includes('\\') ? JSON.parse(key) : key.slice(1, -1))
    }
    start = text.indexOf('"', end)
  }
  return named(parse(numbered + text.slice(copied)), names)
}

/** May be true for texts without one. */
export const hasEscapedKey = (text: string): boolean => text.includes('\\') && ESCAPED_KEY.test(text)
const ESCAPED_KEY = /\\.[^"\\]*"\s*:/s

/** The position after its closing quote. */
function endOfString(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}

function followsColon(text: string, end: number): boolean {
  let at = end
  while (at < text.length && ' \t\n\r'.includes(text.charAt(at))) at++
  return text[at] === ':'
}

/** Numeric keys are in ascending order, which is their order in the text. */
function named(value: unknown, names: readonly string[]): unknown {
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return value
  if (Array.isArray(value)) return value.map((item) => named(item, names))
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [names[Number(key)] ?? key, named(item, names)]),
  )
}
