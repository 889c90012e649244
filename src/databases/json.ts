import type { Json, RawJson } from '#databases/plan.ts'

// In the language since ES2026, not yet in TypeScript's library.
declare global {
  interface JSON {
    rawJSON(text: string): RawJson
    isRawJSON(value: unknown): value is RawJson
    parse(text: string, reviver: (key: string, value: Json, context: { source?: string }) => Json): Json
  }
}

/**
 * `JSON.parse` that keeps every digit: a number which a double would change (a 64-bit id, a long numeric) becomes raw JSON,
 * which `JSON.stringify` writes back as it came. Throws SyntaxError as JSON.parse does; depth is bounded by whoever reads the body.
 * A reviver makes parsing about ten times slower, so it runs only when the text has something that looks like such a number.
 */
export function parseJson(text: string): Json {
  return suspicious.test(text) ? JSON.parse(text, exact) : JSON.parse(text)
}

// 15 significant digits always survive a double (IEEE 754 binary64), so shorter numbers without exponent need no look; but the
// sign of -0 does not survive being written again.
const suspicious = /(?:^|[:[,\s])(?:-?\d(?:[\d.]{15}|[\d.]*[eE])|-0(?![.\d]*[1-9]))/

function exact(_key: string, value: Json, { source }: { source?: string }): Json {
  if (typeof value !== 'number' || source === undefined) return value
  return digits(source) === digits(String(value)) && !Object.is(value, -0) ? value : JSON.rawJSON(source)
}

/** The value of a decimal in a comparable form: sign, significant digits, exponent of the first. */
function digits(text: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text)
  if (!match) return text
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  const all = whole + fraction
  const first = all.search(/[1-9]/)
  if (first < 0) return '0'
  return `${sign}${all.slice(first).replace(/0+$/, '')}e${whole.length - first + Number(exponent)}`
}
