import { type Shape, sampleOf, type Target } from './routes.ts'

/** Texts of about the given length that are slow to process for bad algorithms. */
export const TEXTS: Readonly<Record<string, (length: number) => string>> = {
  'one letter': (length) => 'a'.repeat(length),
  capitals: (length) => 'A'.repeat(length),
  'changing case': (length) => 'aB'.repeat(length / 2),
  'a whole number': (length) => `1${'0'.repeat(length)}1`,
  'a small fraction': (length) => `0.${'0'.repeat(length)}1`,
  'a long exponent': (length) => `1e${'0'.repeat(length)}1x`,
  'a word and spaces': (length) => `a${' '.repeat(length)}!`,
  spaces: (length) => ' '.repeat(length),
  'open parentheses': (length) => '('.repeat(length),
  'open brackets': (length) => '[{'.repeat(length / 2),
  'quotes of one name': (length) => `"${'""'.repeat(length / 2)}x`,
  'quotes and dots': (length) => `"".${'"a".'.repeat(length / 4)}`,
  apostrophes: (length) => `'a''`.repeat(length / 4),
  backslashes: (length) => '\\'.repeat(length),
  dots: (length) => '.'.repeat(length),
  'names and dots': (length) => 'a.'.repeat(length / 2),
  commas: (length) => 'a,'.repeat(length / 2),
  terms: (length) => 'a.eq.1,'.repeat(length / 7),
  'nested terms': (length) => 'not.or('.repeat(length / 7),
  'orders of columns': (length) => 'a.desc.nullslast'.repeat(length / 16),
  dollars: (length) => '$a'.repeat(length / 2),
  statements: (length) => 'select a;'.repeat(length / 9),
  comments: (length) => '/*--'.repeat(length / 4),
  keyspaces: (length) => `select${' system'.repeat(length / 7)}`,
  addresses: (length) => 'a://a:'.repeat(length / 6),
  slashes: (length) => `https://a${'/'.repeat(length)}!`,
  'steps up': (length) => `/${'../'.repeat(length / 3)}`,
  'a name and a host': (length) => `${'a'.repeat(length / 2)}@${'a.'.repeat(length / 4)}`,
  'words of a credential': (length) => `Bearer ${'a '.repeat(length / 2)}`,
  'letters of another script': (length) => '\u4e00\u5341'.repeat(length / 2),
  'marks that change places': (length) => `a${'\u0301\u0323'.repeat(length / 2)}`,
}

/** For parameters and headers that another route has tested with all texts. */
export const FEW_TEXTS: typeof TEXTS = Object.fromEntries(
  Object.entries(TEXTS).filter(([name]) => ['changing case', 'backslashes'].includes(name)),
)

/** JSON texts of values: the texts above, long numbers, and large lists and objects. */
export const VALUES: Readonly<Record<string, (length: number) => string>> = {
  ...Object.fromEntries(
    Object.entries(TEXTS).map(([name, text]) => [name, (length) => JSON.stringify(text(length))]),
  ),
  'a number': (length) => `1${'0'.repeat(length)}1`,
  'a fraction': (length) => `0.${'0'.repeat(length)}1`,
  'a list of fractions': (length) => `[${'1.10,'.repeat(length / 5)}1]`,
  'a list of names': (length) => `[${'"a",'.repeat(length / 4)}"a"]`,
  'a list of objects': (length) => `[${'{"a":1},'.repeat(length / 8)}{}]`,
  'an object of many': (length) =>
    `{${Array.from({ length: length / 12 }, (_, index) => `"a${index}":"b"`).join()}}`,
}

/** For values that only the parser and the schema validation read. */
export const FEW: typeof VALUES = Object.fromEntries(
  Object.entries(VALUES).filter(([name]) => ['a number', 'backslashes', 'a list of names'].includes(name)),
)

/** A value in a body that a test can replace: `fill` returns the JSON text of the body with the given value. */
export type Spot = {
  readonly path: string
  readonly shape: Shape
  readonly fill: (json: string) => string
}

/** All values of a body, including nested ones, that its schema or its example has. */
export function spotsOf({ body }: Target): Spot[] {
  if (body === undefined) return []
  const sample = sampleOf({ ...body, type: 'object' })
  return openings(body, sample).map(({ path, put, shape }) => ({
    path: path || 'body',
    shape,
    fill: (json) => JSON.stringify(put(OPEN)).replace(JSON.stringify(OPEN), () => json),
  }))
}

const OPEN = '<the open value>'

type Opening = { readonly path: string; readonly shape: Shape; readonly put: (value: unknown) => unknown }

/** Whether the schema limits the length or the type of the value. */
export function isBounded({ type, enum: words, maxLength, format, anyOf }: Shape): boolean {
  if (anyOf !== undefined) return anyOf.every(isBounded)
  const types = [type].flat()
  if (words !== undefined || maxLength !== undefined || format === 'uuid') return true
  return (
    type !== undefined && types.every((one) => ['integer', 'number', 'boolean', 'null'].includes(one ?? ''))
  )
}

function openings(shape: Shape, sample: unknown, depth = 0): Opening[] {
  const own: Opening = { path: '', shape, put: (value) => value }
  if (depth > 5) return [own]
  const inner = membersOf(shape, sample).flatMap(({ name, shape: member, sample: given }) =>
    openings(member, given, depth + 1).map(
      ({ path, shape: opened, put }): Opening => ({
        shape: opened,
        path: `${depth === 0 ? '' : '.'}${name}${path}`,
        put: (value) => (Array.isArray(sample) ? [put(value)] : { ...asObject(sample), [name]: put(value) }),
      }),
    ),
  )
  return [own, ...inner]
}

type Member = { readonly name: string; readonly shape: Shape; readonly sample: unknown }

function membersOf(shape: Shape, sample: unknown): Member[] {
  const all = [shape, ...(shape.anyOf ?? []), ...(shape.oneOf ?? []), ...(shape.allOf ?? [])]
  if (Array.isArray(sample)) {
    const items = all.find((one) => one.items !== undefined)?.items ?? {}
    return [{ name: '0', shape: items, sample: sample[0] ?? sampleOf(items) }]
  }
  const given = asObject(sample)
  const properties = Object.assign({}, ...all.map((one) => one.properties ?? {})) as Record<string, Shape>
  return [...new Set([...Object.keys(properties), ...Object.keys(given)])].map((name) => {
    const member = properties[name] ?? {}
    return { name, shape: member, sample: given[name] ?? sampleOf(member) }
  })
}

const asObject = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
