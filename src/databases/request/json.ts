import type { Json, RawJson } from '#databases/request/request.ts'

// In the language since ES2026, not yet in TypeScript's library.
declare global {
  interface JSON {
    rawJSON(text: string): RawJson
    isRawJSON(value: unknown): value is RawJson
    parse(text: string, reviver: (key: string, value: Json, context: { source?: string }) => Json): Json
  }
}

/**
 * `JSON.parse` that keeps numbers as they are written: a number that a double would change (a 64-bit id, a long numeric, the scale of 1.10)
 * becomes raw JSON, which `JSON.stringify` writes back unchanged. Throws SyntaxError as JSON.parse does; the reader of the body bounds the
 * depth. A reviver makes parsing ten times slower, so these numbers pass the parser as marked texts instead.
 */
export function parseJson(text: string): Json {
  const numbers = changedNumbers(text)
  if (numbers.length === 0) return JSON.parse(text)
  // A text of the caller may look like a mark. Only then is the slow reviver used.
  if (text.includes(ESCAPED_MARK)) return JSON.parse(text, exact)
  const raw = numbers.map(({ from, end }) => JSON.rawJSON(text.slice(from, end)))
  return unmarked(JSON.parse(marked(text, numbers)), raw)
}

function exact(_key: string, value: Json, { source }: { source?: string }): Json {
  return typeof value === 'number' && source !== undefined && isChanged(source) ? JSON.rawJSON(source) : value
}

type Place = { readonly from: number; readonly end: number }

/** Finds all numbers that a double would write differently, in one pass, so the time is linear in the length. */
function changedNumbers(text: string): Place[] {
  const places: Place[] = []
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfText(text, at)
    else if (code !== MINUS && !isDigit(code)) at++
    else {
      const number = numberAt(text, at)
      if (number.isSuspect && isChanged(text.slice(at, number.end)) && !isKey(text, number.end))
        places.push({ from: at, end: number.end })
      at = number.end
    }
  }
  return places
}

/**
 * A double keeps 15 significant digits (IEEE 754 binary64), so a shorter whole number needs no further check, except -0; and a shorter decimal
 * is written the same from 1 on, unless it ends with a zero.
 */
function numberAt(text: string, from: number): { readonly end: number; readonly isSuspect: boolean } {
  let end = from + 1
  let hasExponent = false
  let hasPoint = false
  for (; end < text.length; end++) {
    const code = text.charCodeAt(end)
    if (code === POINT) hasPoint = true
    else if (code === SMALL_E || code === LARGE_E) hasExponent = true
    else if (code !== MINUS && code !== PLUS && !isDigit(code)) break
  }
  const first = text.charCodeAt(from)
  const isBelowOne = (first === MINUS ? text.charCodeAt(from + 1) : first) === ZERO
  const isShort = !hasExponent && end - from <= 15
  const isKept =
    isShort && (hasPoint ? !isBelowOne && text.charCodeAt(end - 1) !== ZERO : first !== MINUS || !isBelowOne)
  return { end, isSuspect: !isKept }
}

/** The position after the closing quote of the text that begins at `from`. */
function endOfText(text: string, from: number): number {
  for (let at = from + 1; ; ) {
    const quote = text.indexOf('"', at)
    if (quote < 0) return text.length
    let backslashes = 0
    while (text.charCodeAt(quote - 1 - backslashes) === BACKSLASH && quote - 1 - backslashes > from)
      backslashes++
    if (backslashes % 2 === 0) return quote + 1
    at = quote + 1
  }
}

/** A number before a colon is a syntax error, and must stay one. */
function isKey(text: string, from: number): boolean {
  let at = from
  while (' \t\n\r'.includes(text.charAt(at)) && at < text.length) at++
  return text.charCodeAt(at) === COLON
}

/** Whether a double would be written differently: another value, another scale, or no JSON number at all. */
function isChanged(source: string): boolean {
  const value = Number(source)
  return Object.is(value, -0) || String(value) !== (withoutExponent(source) ?? source)
}

/** `15e2` → `1500`: a whole number that is short enough to be written without exponent. */
function withoutExponent(source: string): string | undefined {
  if (source.length > 24) return undefined
  const [, digits, exponent] = /^(-?[1-9]\d*)[eE]\+?(\d{1,2})$/.exec(source) ?? []
  return digits === undefined ? undefined : digits + '0'.repeat(Number(exponent))
}

/** Replaces each number by NUL and its index; bodies with NUL in a text are refused (kernel/http/bodies/body.ts). */
function marked(text: string, numbers: readonly Place[]): string {
  const parts: string[] = []
  let copied = 0
  for (const [index, { from, end }] of numbers.entries()) {
    parts.push(text.slice(copied, from), `"${ESCAPED_MARK}${index}"`)
    copied = end
  }
  parts.push(text.slice(copied))
  return parts.join('')
}

const ESCAPED_MARK = '\\u0000'

/** Without recursion: values of a database may be nested deeper than the stack. */
function unmarked(value: Json, raw: readonly RawJson[]): Json {
  const number = (text: string): Json =>
    text.charCodeAt(0) === 0 ? (raw[Number(text.slice(1))] ?? text) : text
  if (typeof value === 'string') return number(value)
  const left = [value]
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (typeof next !== 'object' || next === null) continue
    // The parser has just made it: nothing else refers to it yet. A list of the keys of a long list takes longer than its items.
    const members = next as Record<string | number, Json>
    const keys = Array.isArray(next) ? next.keys() : Object.keys(next)
    for (const key of keys) {
      const member = members[key] ?? null
      if (typeof member === 'string') members[key] = number(member)
      else if (typeof member === 'object') left.push(member)
    }
  }
  return value
}

const isDigit = (code: number): boolean => code >= ZERO && code <= ZERO + 9
const [QUOTE, PLUS, MINUS, POINT, ZERO, COLON] = [0x22, 0x2b, 0x2d, 0x2e, 0x30, 0x3a]
const [LARGE_E, BACKSLASH, SMALL_E] = [0x45, 0x5c, 0x65]
