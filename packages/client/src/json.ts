/** How numbers arrive: as doubles, or exactly: as a bigint or a text wherever a double would lose digits. */
export type Numbers = 'number' | 'exact'

export const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** Whether a number may have been another one before it was rounded: beyond 2⁵³. */
export const isRounded = (value: unknown): boolean => Number.isInteger(value) && !Number.isSafeInteger(value)

/** Bigints become numbers, also within JSON of a column. Numbers that JSON lacks go as texts, which the database converts to the type of the column. */
export const toJson = (value: unknown): string =>
  JSON.stringify(value, marked).replace(/"\\u0000(-?\d+)"/g, '$1')

/** A text with NUL is refused by the service, so it may be changed, lest it looks like a bigint. */
function marked(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint' || (typeof value === 'string' && value.startsWith('\0'))) return `\0${value}`
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value
}

export const parseJson = (text: string, numbers: Numbers): unknown =>
  numbers === 'exact' ? parseExact(text) : JSON.parse(text)

type Context = { readonly source?: string } | undefined
type Reviver = (key: string, value: unknown, context?: Context) => unknown

// TypeScript's reviver has no context yet.
const parse = JSON.parse as (text: string, reviver: Reviver) => unknown

const SHOWS_SOURCE = parse('1', (_key, _value, context) => context?.source) === '1'

/** Keeps every digit. */
export const parseExact = (text: string, showsSource = SHOWS_SOURCE): unknown =>
  showsSource
    ? parse(text, (_key, value, context) =>
        typeof value === 'number' ? exact(context?.source ?? '') : value,
      )
    : parseMarked(text)

/**
 * A number if it has all digits of the text, and could not be a rounded one, else a bigint, or the text: `1.10` is not 1.1 in a numeric. Only
 * floats are written with an exponent.
 */
function exact(source: string): number | bigint | string {
  const value = Number(source)
  if (/^-?\d+$/.test(source)) return isRounded(value) ? BigInt(source) : value
  return String(value) === source || /e/i.test(source) ? value : source
}

/** For engines that do not show the text of a number: those that matter become texts, which begin with a mark that no other text begins with. */
function parseMarked(text: string): unknown {
  let mark = '\0'
  while (text.includes(`"${escaped(mark)}`)) mark += '\0'
  let isInText = false
  const marked = text.replace(/\\.|"|-?\d[\d.eE+-]*/g, (token) => {
    if (token === '"') isInText = !isInText
    const isKept = isInText || /^["\\]/.test(token) || typeof exact(token) === 'number'
    return isKept ? token : `"${escaped(mark)}${token}"`
  })
  return parse(marked, (_key, value) =>
    typeof value === 'string' && value.startsWith(mark) ? exact(value.slice(mark.length)) : value,
  )
}

const escaped = (mark: string): string => mark.replaceAll('\0', '\\u0000')
