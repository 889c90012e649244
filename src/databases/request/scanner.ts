/** A position in a text that is being parsed; the grammars of columns and of conditions share it. */
export type Scanner = { readonly text: string; at: number }

export const scan = (text: string): Scanner => ({ text, at: 0 })
export const atEnd = (scanner: Scanner): boolean => scanner.at >= scanner.text.length
export const peek = (scanner: Scanner): string => scanner.text.charAt(scanner.at)

export function skipSpace(scanner: Scanner): void {
  while (peek(scanner) === ' ' || peek(scanner) === '\t' || peek(scanner) === '\n') scanner.at++
}

export function eat(scanner: Scanner, expected: string): boolean {
  if (!scanner.text.startsWith(expected, scanner.at)) return false
  scanner.at += expected.length
  return true
}

/** The text up to one of the stops or the end. */
export function until(scanner: Scanner, stops: string): string {
  const start = scanner.at
  while (!atEnd(scanner) && !stops.includes(peek(scanner))) scanner.at++
  return scanner.text.slice(start, scanner.at)
}

/**
 * `"…"` with `\"` and `\\` as PostgREST has it, and `""` as SQL has it; undefined when the closing quote is missing. The opening quote is
 * eaten.
 */
export function quoted(scanner: Scanner): string | undefined {
  let text = ''
  while (!atEnd(scanner)) {
    text += until(scanner, '"\\')
    if (peek(scanner) === '"' && !scanner.text.startsWith('""', scanner.at)) {
      scanner.at++
      return text
    }
    // The first character escapes the second.
    text += scanner.text.charAt(scanner.at + 1)
    scanner.at += 2
  }
  return undefined
}

export const quote = (text: string): string => `"${text.replace(/["\\]/g, '\\$&')}"`
