import { eachMember, membersOf } from '#databases/drivers/json-rows.ts'
import { fail } from '#databases/failures.ts'
import { type Catalogue, type Column, catalogueOf, type Table } from '#databases/plan/catalogue.ts'
import { SYSTEM_NAMES } from '#databases/plan/data-types.ts'
import { startTimeSlice } from '#kernel/time-slice.ts'

/** The structure of a schema from PostgREST's OpenAPI document. It has no unique constraints, no checks, and keys of one column only. */
export type OpenApiCatalogue = Catalogue & {
  /** Arguments of the functions, by name. */
  readonly functions: ReadonlyMap<string, ReadonlyMap<string, Column>>
  readonly version: string
}

/**
 * https://docs.postgrest.org/en/v13/references/api/openapi.html. No member is assumed to exist. Reading large documents yields to other
 * work.
 */
export async function readOpenApi(schema: string, json: string): Promise<OpenApiCatalogue> {
  const document = membersOf(json.trim())
  const definitions = await partsOf(document.get('definitions'))
  const paths = await partsOf(document.get('paths'))
  if (definitions === undefined || paths === undefined)
    throw fail('client_refused', {
      hint: 'The server at this URL is not PostgREST, or its OpenAPI document is off.',
    })
  const slice = startTimeSlice()
  const tables: Table[] = []
  for (const [name, definition] of definitions) {
    tables.push(tableOf(schema, name, fields(definition), fields(paths.get(`/${name}`))))
    if (slice.isOver()) await slice.next()
  }
  const { version } = fields(JSON.parse(document.get('info') ?? 'null'))
  return {
    ...catalogueOf(tables),
    functions: functionsOf(paths),
    version: typeof version === 'string' ? (version.split(' ')[0] ?? '') : 'unknown',
  }
}

/** The members of an object, each parsed separately; undefined when it is not an object. */
async function partsOf(json: string | undefined): Promise<ReadonlyMap<string, unknown> | undefined> {
  if (!json?.startsWith('{')) return undefined
  const slice = startTimeSlice()
  const parts = new Map<string, unknown>()
  for (const [name, part] of eachMember(json)) {
    parts.set(name, JSON.parse(part))
    if (slice.isOver()) await slice.next()
  }
  return parts
}

type Fields = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null
const fields = (value: unknown): Fields => (isObject(value) ? value : {})

function tableOf(schema: string, name: string, definition: Fields, path: Fields): Table {
  const required = new Set(Array.isArray(definition.required) ? definition.required : [])
  const columns = Object.entries(fields(definition.properties)).map(([column, property]) => {
    const facts = fields(property)
    return { column: columnOf(column, facts, !required.has(column)), note: noteOf(facts.description) }
  })
  return {
    schema,
    name,
    kind: 'post' in path ? 'table' : 'view',
    estimatedRows: 0,
    columns: new Map(columns.map(({ column }) => [column.name, column])),
    primaryKey: columns.filter(({ note }) => note.isKey).map(({ column }) => column.name),
    constraints: columns.flatMap(({ column, note: { refersTo } }) =>
      refersTo === undefined
        ? []
        : [
            {
              name: column.name,
              kind: 'foreign key',
              columns: [column.name],
              references: { schema, ...refersTo },
              definition: `FOREIGN KEY (${column.name}) REFERENCES ${refersTo.table}(${refersTo.columns[0]})`,
            },
          ],
    ),
  }
}

type Note = {
  readonly isKey: boolean
  readonly refersTo: { readonly table: string; readonly columns: readonly [string] } | undefined
}

/**
 * PostgREST appends its note to the comment of the column. A comment that imitates a note has no effect on others: rights are required for
 * the named table, and PostgREST is asked for that table only.
 */
function noteOf(description: unknown): Note {
  const [, note] = /(?:^|\n\n)Note:\n(.*)$/s.exec(typeof description === 'string' ? description : '') ?? []
  const [, table, column] = /<fk table='(.*)' column='(.*)'\/>$/.exec(note ?? '') ?? []
  return {
    isKey: note?.includes('<pk/>') ?? false,
    refersTo: table === undefined || column === undefined ? undefined : { table, columns: [column] },
  }
}

function columnOf(name: string, { format, maxLength, ...facts }: Fields, nullable: boolean): Column {
  const cast = typeof format === 'string' ? format : 'text'
  const element = cast.endsWith('[]') ? cast.slice(0, -2) : undefined
  return {
    name,
    type: typeof maxLength === 'number' ? `${cast}(${maxLength})` : cast,
    cast,
    category: element === undefined ? (Array.isArray(facts.enum) ? 'E' : categoryOf(cast)) : 'A',
    base: element === undefined ? baseOf(cast) : `_${baseOf(element)}`,
    nullable,
    fallback: facts.default === undefined ? undefined : String(facts.default),
    // It does not mark computed columns; the database refuses writes to them.
    writable: true,
    identity: undefined,
  }
}

/** pg_type.typname of types that format_type writes in several words. */
const BASES: Readonly<Record<string, string>> = {
  ...SYSTEM_NAMES,
  'character varying': 'varchar',
  character: 'bpchar',
  'timestamp without time zone': 'timestamp',
  'timestamp with time zone': 'timestamptz',
  'time without time zone': 'time',
  'time with time zone': 'timetz',
}
const baseOf = (type: string): string => (Object.hasOwn(BASES, type) ? (BASES[type] ?? type) : type)

/** pg_type.typcategory, where it affects how values are written. */
function categoryOf(type: string): string {
  if (type === 'boolean') return 'B'
  if (/^(smallint|integer|bigint|numeric|real|double precision)$/.test(type)) return 'N'
  return /^(text|character( varying)?|name|citext)$/.test(type) ? 'S' : 'U'
}

function functionsOf(paths: ReadonlyMap<string, unknown>): OpenApiCatalogue['functions'] {
  const named = [...paths].filter(([path]) => path.startsWith('/rpc/'))
  return new Map(
    named.map(([path, facts]) => [path.slice('/rpc/'.length), argumentsOf(fields(fields(facts).post))]),
  )
}

function argumentsOf({ parameters }: Fields): ReadonlyMap<string, Column> {
  const body = (Array.isArray(parameters) ? parameters : [])
    .map(fields)
    .find((parameter) => parameter.in === 'body')
  const { properties } = fields(body?.schema)
  return new Map(
    Object.entries(fields(properties)).map(([name, facts]) => [name, columnOf(name, fields(facts), true)]),
  )
}
