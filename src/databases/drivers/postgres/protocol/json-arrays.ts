/**
 * Arrays in results of callers' own SQL. Statements of plans use `to_json`; here the SQL is the caller's, so the literal (`{1,NULL,"a b"}`)
 * is rewritten to JSON. Arrays of other types stay literals.
 */
export type ArrayWriter = (literal: string) => string

export function arrayWriter(type: number): ArrayWriter | undefined {
  const element = ELEMENTS.get(type)
  return element && ((literal) => rewrite(literal, element))
}

type Element = (text: string) => string

const quoted: Element = (text) => JSON.stringify(text)
const asIs: Element = (text) => text
const bool: Element = (text) => (text === 't' ? 'true' : 'false')
const real: Element = (text) => (/^-?[NI]/.test(text) ? quoted(text) : text)
/** The form of rows.ts: ISO 8601 for years of four digits. */
const timestamp: Element = (text) => quoted(isCommon(text) ? text.replace(' ', 'T') : text)
const instant: Element = (text) =>
  quoted(isCommon(text) ? text.replace(' ', 'T').replace(/\+00$/, 'Z') : text)
const isCommon = (text: string): boolean => /^\d{4}-\d\d-\d\d \d/.test(text) && !text.endsWith('BC')

/** By type OID; the numbers are fixed in PostgreSQL's pg_type.dat. */
const ELEMENTS = new Map<number, Element>([
  [1000, bool],
  ...[1005, 1007, 1016, 1028].map((oid) => [oid, asIs] as const), // int2, int4, int8, oid
  ...[1021, 1022, 1231].map((oid) => [oid, real] as const), // float4, float8, numeric
  ...[199, 3807].map((oid) => [oid, asIs] as const), // json, jsonb
  [1115, timestamp],
  [1185, instant],
  // text, varchar, bpchar, name, date, time, timetz, interval, uuid, inet, cidr, bytea
  ...[1009, 1015, 1014, 1003, 1182, 1183, 1270, 1187, 2951, 1041, 651, 1001].map(
    (oid) => [oid, quoted] as const,
  ),
])

/** https://www.postgresql.org/docs/18/arrays.html#ARRAYS-IO; `[0:1]={…}` begins with bounds, which JSON cannot express. */
function rewrite(literal: string, element: Element): string {
  const parts: string[] = []
  let at = literal.startsWith('[') ? literal.indexOf('=') + 1 : 0
  while (at < literal.length) {
    const character = literal.charAt(at)
    if (character === '{') parts.push('[')
    else if (character === '}') parts.push(']')
    else if (character === ',') parts.push(',')
    else {
      const { text, end, isQuoted } = character === '"' ? quotedItem(literal, at) : plainItem(literal, at)
      parts.push(!isQuoted && text === 'NULL' ? 'null' : element(text))
      at = end - 1
    }
    at++
  }
  return parts.join('')
}

type Item = { readonly text: string; readonly end: number; readonly isQuoted: boolean }

function quotedItem(literal: string, from: number): Item {
  let at = from + 1
  while (at < literal.length && literal[at] !== '"') at += literal[at] === '\\' ? 2 : 1
  return { text: literal.slice(from + 1, at).replace(/\\(.)/gs, '$1'), end: at + 1, isQuoted: true }
}

function plainItem(literal: string, from: number): Item {
  let at = from
  while (at < literal.length && literal[at] !== ',' && literal[at] !== '}') at++
  return { text: literal.slice(from, at), end: at, isQuoted: false }
}

/** Rewrites a DataRow from its first column on: the array literals become JSON. */
export function rewriteRow(
  data: Buffer,
  from: number,
  writers: readonly (ArrayWriter | undefined)[],
): Buffer {
  const parts: Buffer[] = []
  let at = from
  for (const writer of writers) {
    const length = data.readInt32BE(at)
    const end = at + 4 + Math.max(0, length)
    if (writer === undefined || length < 0) parts.push(data.subarray(at, end))
    else {
      const json = Buffer.from(writer(data.toString('utf8', at + 4, end)))
      const head = Buffer.allocUnsafe(4)
      head.writeInt32BE(json.length)
      parts.push(head, json)
    }
    at = end
  }
  return Buffer.concat(parts)
}
