/** The columns of a request: a text goes as it is, an object is compiled to the same grammar. */
export const columnsOf = (selection: unknown): readonly string[] => {
  if (typeof selection === 'string') return selection.trim() === '' ? [] : [selection]
  return Object.entries(selection ?? {}).flatMap(([key, value]) => columnOf(key, value))
}

type Nested = {
  readonly select: object
  readonly from?: string
  readonly hint?: string
  readonly schema?: string
}

function columnOf(key: string, value: unknown): readonly string[] {
  if (value === undefined || value === false) return []
  if (value === true) return [key === '*' ? key : quoted(key)]
  if (typeof value === 'string') return [`${quoted(key)}:${quoted(value)}`]
  if (typeof value !== 'object' || value === null)
    throw new TypeError(`${key} is true, a name or an object of columns`)
  const { select, from = key, hint, schema } = isNested(value) ? value : { select: value }
  const table = schema === undefined ? quoted(from) : `${quoted(schema)}.${quoted(from)}`
  const columns = columnsOf(select)
  if (columns.length === 0) throw new TypeError(`The relation ${key} has no columns`)
  const choice = hint === undefined ? '' : `!${quoted(hint)}`
  return [`${quoted(key)}:${table}${choice}(${columns.join(',')})`]
}

/** `{ select: { … }, from: 'table' }`. A column may be called `select`; then its value is no object. */
const isNested = (value: object): value is Nested =>
  'select' in value && typeof value.select === 'object' && value.select !== null

/** As the service reads names with other characters. */
export const quoted = (name: string): string =>
  /^[A-Za-z_][A-Za-z0-9_$]*$/.test(name) ? name : `"${name.replace(/["\\]/g, '\\$&')}"`
