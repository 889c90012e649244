import fc from 'fast-check'
import { ANY_CHARACTER } from '#test/property/any-character.ts'
import { sampleOf, type Target } from './routes.ts'

/** One change to an otherwise valid request. */
export type Attack = {
  readonly name: string
  /** Query string without the question mark; by default a valid one. */
  readonly query?: string
  /** Value for each `{name}` in the path. */
  readonly parameter?: string
  readonly headers?: readonly (readonly [name: string, value: string])[]
  readonly contentType?: string | null
  /** By default a valid body. */
  readonly body?: Buffer | null
}

const DEEP = 100_000
const HUGE = 2 * 2 ** 20

/** JSON texts of values for body members. */
const VALUES = [
  'null', 'true', '0', '-1', '1.5', '1e308', '1e999', '-1e999', '9007199254740993', '123456789012345678901234567890',
  '""', '" "', '"x"', '"\\u0000"', '"a\\u0000b"', '"\\ud800"', '"\\udfff\\ud800"', '"\\u202e"', '"\ufeff"', '"%00"',
  `"' or 1=1 --"`, '"$1"', '"../../etc/passwd"', '"{{7*7}}"', '"<script>"',
  '"2026-02-30T00:00:00Z"', '"2026-12-31T23:59:60Z"', '"0000-01-01T00:00:00Z"', '"9999-12-31T23:59:59-23:59"',
  '[]', '[null]', '[[[]]]', '["a",1,{}]', '["\\u0000"]', '{}', '{"":""}', '{"a":{"b":{"c":1}}}', '{"\\u0000":1}',
  '{"__proto__":{"admin":true}}', '{"constructor":{"prototype":{"admin":true}}}', '{"toString":1,"valueOf":2}',
  '"[\\"\\\\u0000\\"]"', '"{\\"a\\":\\"\\\\ud800\\"}"', '"{\\"__proto__\\":1}"',
  `"${'x'.repeat(70_000)}"`, `"${'[['.repeat(5_000)}"`, `"${'['.repeat(70)}${']'.repeat(70)}"`, `[${'1,'.repeat(3_000)}1]`,
] as const // biome-ignore format: one line a kind

const BODIES: Readonly<Record<string, Buffer | null>> = {
  none: null,
  empty: Buffer.alloc(0),
  'an array': Buffer.from('[]'),
  'a text': Buffer.from('"text"'),
  null: Buffer.from('null'),
  'a number': Buffer.from('17'),
  'half a body': Buffer.from('{"email":"a@example.com","na'),
  'single quotes': Buffer.from("{'a':1}"),
  'a trailing comma': Buffer.from('{"a":1,}'),
  'two bodies': Buffer.from('{}{}'),
  'a byte order mark': Buffer.from('\ufeff{}'),
  'a raw NUL': Buffer.from('{"a":"\0"}'),
  'only NULs': Buffer.alloc(100),
  'bytes that are not UTF-8': Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
  'a surrogate in UTF-8': Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d]),
  'overlong UTF-8': Buffer.from([0x22, 0xc0, 0x80, 0x22]),
  'UTF-16': Buffer.from('{"a":1}', 'utf16le'),
  'two megabytes of text': Buffer.from(`{"a":"${'x'.repeat(HUGE)}"}`),
  'two megabytes of junk': Buffer.alloc(HUGE, 'a'),
  'deep arrays': Buffer.from('['.repeat(DEEP) + ']'.repeat(DEEP)),
  'deep arrays around a number of many digits': Buffer.from(`${'['.repeat(DEEP)}1e999${']'.repeat(DEEP)}`),
  'deep objects': Buffer.from(`${'{"a":'.repeat(DEEP)}1${'}'.repeat(DEEP)}`),
  'deep and unterminated': Buffer.from('[{"a":'.repeat(DEEP)),
  __proto__key: Buffer.from('{"__proto__":{"isAdmin":true}}'),
  'an escaped __proto__': Buffer.from('{"\\u005f_proto__":{"isAdmin":true}}'),
  constructor: Buffer.from('{"constructor":{"prototype":{"isAdmin":true}}}'),
  'one key ten thousand times': Buffer.from(`{${'"a":1,'.repeat(10_000)}"a":1}`),
}

const CONTENT_TYPES = [
  null, '', 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/xml',
  'application/json; charset=utf-16', 'application/jsonp', 'application/json, text/plain', '\xff', '__proto__', 'a'.repeat(2_000),
] as const // biome-ignore format: one line reads better

/** Percent-encoded texts for path and query. */
const ENCODED = [
  '', '%00', 'a%00b', '%ED%A0%80', '%ff', '%', '%zz', '%u0000', '%2e%2e', '%2f%2f', '..', '%0d%0aset-cookie:a=b', '__proto__',
  'constructor', 'null', 'undefined', 'true', '-1', '1e999', '99999999999999999999', '%27%20or%201=1--', '%F0%9F%98%80',
  "';drop%20table%20books;--", '{}', '[]', 'a'.repeat(600), 'a'.repeat(9_000),
] as const // biome-ignore format: one line reads better

const QUERIES = [
  '&&&',
  '=',
  '?',
  '%',
  '%00=%00',
  '__proto__=1',
  'constructor[prototype][a]=1',
  'a[]=1&a[]=2',
  'api_key=%00',
] as const

const HEADERS: readonly (readonly [name: string, value: string])[] = [
  ['x-request-id', 'a b'], ['x-request-id', 'x'.repeat(5_000)], ['x-request-id', '<script>'], ['x-request-id', '\xff\xfe'],
  ['x-service-client', '\xff'], ['x-service-client', '__proto__'], ['x-service-client', 'constructor'], ['x-service-client', ''],
  ['x-service-client', 'x'.repeat(9_000)], ['cookie', 'service-auth.session-token=%ff%00'], ['cookie', '=;;=;__proto__=1'],
  ['cookie', `service-auth.session-token=${'A'.repeat(43)}`], ['cookie', 'a'.repeat(9_000)], ['authorization', 'Bearer'],
  ['authorization', 'Bearer \xff'], ['authorization', `Bearer ${'A'.repeat(43)}`], ['authorization', 'Basic Og=='], ['authorization', 'svc_'],
  ['apikey', '\xff'], ['x-api-key', `svc_${'0'.repeat(16)}.${'A'.repeat(43)}`], ['x-service-key', ' '],
  ['origin', 'null'], ['origin', '\xff'], ['origin', 'https://evil.example'], ['origin', '__proto__'], ['referer', 'http://['],
  ['sec-fetch-site', 'cross-site'], ['x-forwarded-for', '%00, 1.2.3.4'], ['forwarded', 'for="\xff'], ['user-agent', '\xff'.repeat(3_000)],
  ['accept', '\xff'], ['accept-encoding', 'x'.repeat(500)], ['content-encoding', 'gzip'], ['expect', 'something'], ['upgrade', 'websocket'],
  ['x-strip-nulls', '\xff'], ['if-none-match', '*'], ['range', 'bytes=0-9999999999'], ['x-user-id', '\xff'], ['accept-version', '9.9.9'],
] // biome-ignore format: a line a header

const BROKEN_HEADERS: readonly (readonly [name: string, value: string])[] = [
  ['x-user-id', 'a\0b'], ['x-user-id', '\x01'], ['authorization', 'Bearer a\0b'], ['a\0b', 'c'], ['a b', 'c'], ['', 'c'], ['x-a', 'a\rb'], ['\xff', 'c'],
] // biome-ignore format: a line a kind

/** Attacks that are sent to every route in every run. */
export function attacksOn(target: Target): readonly Attack[] {
  const nothing = { name: 'nothing' }
  if (target.isFile) return [nothing]
  return [
    nothing,
    ...Object.entries(BODIES)
      // The body of a GET is not read, so a long one breaks the connection.
      .filter(([_, body]) => target.method !== 'GET' || (body?.length ?? 0) < 1_000)
      .map(([name, body]) => ({ name: `body: ${name}`, body })),
    { name: 'no content type', contentType: null },
    { name: 'a foreign content type', contentType: 'text/plain' },
    ...fieldsOf(target).map((field) => ({ name: `without ${field}`, body: bodyText(target, field) })),
    ...Object.keys(target.query).map((name) => ({
      name: `without ?${name}`,
      query: properQuery(target, name),
    })),
  ]
}

/** Random attacks: one invalid part, or junk in several places at once. */
export function randomAttack(target: Target): fc.Arbitrary<Attack> {
  const inBody = [fieldAttack(target), memberAttack(target), bytesAttack]
  const arbitraries = [headerAttack, contentTypeAttack, queryAttack(target)]
  if (target.path.includes('{')) arbitraries.push(pathAttack)
  return fc.oneof(...arbitraries, ...(fieldsOf(target).length > 0 ? [...inBody, ...inBody] : []))
}

const named = <T>(
  values: fc.Arbitrary<T>,
  attackOf: (value: T) => Omit<Attack, 'name'>,
  name: (value: T) => string,
) => values.map((value): Attack => ({ name: name(value).slice(0, 60), ...attackOf(value) }))

const junk = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...VALUES) },
  fc.json({ maxDepth: 4 }),
  fc.string({ unit: ANY_CHARACTER, maxLength: 60 }).map((text) => JSON.stringify(text)),
)

const fieldAttack = (target: Target) =>
  named(
    fc.tuple(fc.constantFrom(...fieldsOf(target), 'unknown'), junk),
    ([field, value]) => ({ body: bodyText(target, field, value) }),
    ([field, value]) => `${field}: ${value}`,
  )

const memberAttack = (target: Target) =>
  named(
    fc.dictionary(
      fc.oneof(fc.constantFrom(...fieldsOf(target), 'unknown'), fc.string({ maxLength: 8 })),
      junk,
      { maxKeys: 8 },
    ),
    (members) => ({ body: objectText(Object.entries(members)) }),
    () => 'random members',
  )

const bytesAttack = named(
  fc.uint8Array({ maxLength: 200 }),
  (bytes) => ({ body: Buffer.from(bytes) }),
  () => 'random bytes',
)

const headerAttack = fc.oneof(
  {
    weight: 5,
    arbitrary: named(
      fc.constantFrom(...HEADERS),
      (header) => ({ headers: [header] }),
      ([name, value]) => `${name}: ${value}`,
    ),
  },
  named(
    fc.constantFrom(...BROKEN_HEADERS),
    (header) => ({ headers: [header] }),
    ([name]) => `broken ${name}`,
  ),
)

const contentTypeAttack = named(fc.constantFrom(...CONTENT_TYPES), (contentType) => ({ contentType }), String)

/**
 * Parts of a URL as `fc.webQueryParameters` and `fc.webSegment` make them. Those build a table of all characters in each process, which takes
 * 2 s.
 */
const urlPart = (plain: string) =>
  fc.string({
    unit: fc.oneof(
      { weight: 10, arbitrary: fc.constantFrom(...plain) },
      { weight: 1, arbitrary: ANY_CHARACTER.map(encodeURIComponent) },
    ),
    size: '+1',
  })
const SEGMENT = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=:@"
const encoded = fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...ENCODED) }, urlPart(`${SEGMENT}/?`))

const queryAttack = (target: Target) => {
  const pair = fc.tuple(fc.constantFrom(...Object.keys(target.query), 'unknown'), encoded)
  return named(
    fc.oneof(
      pair.map(([name, text]) => joined(properQuery(target, name), `${name}=${text}`)),
      fc.constantFrom(...QUERIES).map((text) => joined(properQuery(target), text)),
      fc.array(pair, { maxLength: 5 }).map((pairs) => pairs.map((one) => one.join('=')).join('&')),
    ),
    (query) => ({ query }),
    (query) => `?${query}`,
  )
}

const pathAttack = named(
  fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...ENCODED) }, urlPart(SEGMENT)),
  (parameter) => ({ parameter }),
  (parameter) => `path ${parameter}`,
)

const fieldsOf = ({ body }: Target): string[] => Object.keys(body?.properties ?? {})

export const properBody = (target: Target): Buffer | null =>
  target.body === undefined ? null : bodyText(target)

/** A valid body with one field omitted or replaced by the given JSON text. */
function bodyText({ body = {} }: Target, field?: string, value?: string): Buffer {
  // The sample of an object schema is an object.
  const sample = sampleOf({ ...body, type: 'object' }) as Record<string, unknown>
  const members = Object.entries(sample)
    .filter(([name]) => name !== field)
    .map(([name, proper]): [string, string] => [name, JSON.stringify(proper)])
  return objectText(field === undefined || value === undefined ? members : [...members, [field, value]])
}

const objectText = (members: readonly (readonly [name: string, json: string])[]): Buffer =>
  Buffer.from(`{${members.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`)

export function properQuery({ query }: Target, without?: string): string {
  return Object.entries(query)
    .filter(([name, { examples }]) => name !== without && examples !== undefined)
    .map(([name, shape]) => `${name}=${encodeURIComponent(String(sampleOf(shape)))}`)
    .join('&')
}

const joined = (...queries: readonly string[]): string => queries.filter((query) => query !== '').join('&')
