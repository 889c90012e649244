import type pg from 'pg'

/** The structure of a schema, and the OpenAPI document of it in PostgREST's format. */
export type Schema = {
  readonly name: string
  readonly tables: ReadonlyMap<string, readonly ColumnRow[]>
  readonly keys: readonly KeyRow[]
  readonly functions: readonly FunctionRow[]
  /** PostgREST's setting db-max-rows, which also limits the rows of relations. */
  readonly maxRows?: number | undefined
}

export type ColumnRow = {
  readonly table: string
  readonly name: string
  readonly type: string
  readonly length: number | null
  readonly nullable: boolean
  readonly key: boolean
  readonly fallback: string | null
  readonly comment: string | null
  readonly view: boolean
  readonly values: readonly string[] | null
}

export type KeyRow = {
  readonly name: string
  readonly table: string
  readonly columns: readonly string[]
  readonly to: string
  readonly refers: readonly string[]
  readonly unique: boolean
}

export type FunctionRow = {
  readonly name: string
  readonly names: readonly string[]
  readonly types: readonly string[]
  readonly defaults: number
  readonly returns: 'rows' | 'row' | 'values' | 'value' | 'void'
  readonly target: string
  readonly reads: boolean
  /** For a computed relationship: the table of its argument. */
  readonly takes: string | null
}

const COLUMNS = `
select c.relname as table, a.attname as name, format_type(a.atttypid, null) as type,
  case when a.atttypid in ('varchar'::regtype, 'bpchar'::regtype) and a.atttypmod > 4 then a.atttypmod - 4 end as length,
  not a.attnotnull as nullable, coalesce(a.attnum = any(k.conkey), false) as key,
  case when a.attidentity <> '' then format('nextval(%L)', pg_get_serial_sequence(format('%I.%I', n.nspname, c.relname), a.attname))
    when a.attgenerated = '' then pg_get_expr(d.adbin, d.adrelid) end as fallback,
  col_description(c.oid, a.attnum) as comment, c.relkind in ('v', 'm') as view,
  (select array_agg(e.enumlabel::text order by e.enumsortorder) from pg_enum e where e.enumtypid = a.atttypid) as values
from pg_class c join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
left join pg_constraint k on k.conrelid = c.oid and k.contype = 'p'
where n.nspname = $1 and c.relkind in ('r', 'v', 'm', 'p') order by c.relname, a.attnum`

const KEYS = `
select k.conname as name, c.relname as table, t.relname as to,
  (select array_agg(a.attname::text order by n.place) from unnest(k.conkey) with ordinality n(number, place)
    join pg_attribute a on a.attrelid = k.conrelid and a.attnum = n.number) as columns,
  (select array_agg(a.attname::text order by n.place) from unnest(k.confkey) with ordinality n(number, place)
    join pg_attribute a on a.attrelid = k.confrelid and a.attnum = n.number) as refers,
  exists (select from pg_constraint u where u.conrelid = k.conrelid and u.contype in ('p', 'u') and u.conkey = k.conkey) as unique
from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_class t on t.oid = k.confrelid
where k.contype = 'f' and c.relnamespace = $1::regnamespace and t.relnamespace = $1::regnamespace`

const FUNCTIONS = `
select p.proname as name, coalesce(p.proargnames[1:p.pronargs], '{}') as names, p.pronargdefaults as defaults,
  coalesce((select array_agg(format_type(t.type, null) order by t.place) from unnest(p.proargtypes) with ordinality t(type, place)), '{}') as types,
  case when r.typname = 'void' then 'void' when r.typtype = 'c' or p.proargmodes is not null
    then case when p.proretset then 'rows' else 'row' end else case when p.proretset then 'values' else 'value' end end as returns,
  r.typname as target, p.provolatile <> 'v' as reads,
  (select c.relname from pg_class c where p.pronargs = 1 and c.reltype = p.proargtypes[0]) as takes
from pg_proc p join pg_type r on r.oid = p.prorettype where p.pronamespace = $1::regnamespace and p.prokind = 'f'`

export async function readSchema(pool: pg.Pool, name: string): Promise<Schema> {
  const rows = async <T>(sql: string) => (await pool.query(sql, [name])).rows as T[]
  const columns = await rows<ColumnRow>(COLUMNS)
  return {
    name,
    tables: Map.groupBy(columns, ({ table }) => table),
    keys: await rows<KeyRow>(KEYS),
    functions: await rows<FunctionRow>(FUNCTIONS),
  }
}

export function openApiOf({ name, tables, keys, functions }: Schema): object {
  const definitions = [...tables].map(([table, columns]) => [
    table,
    {
      type: 'object',
      required: columns.filter(({ nullable }) => !nullable).map((column) => column.name),
      properties: Object.fromEntries(columns.map((column) => [column.name, propertyOf(column, keys)])),
    },
  ])
  const paths = [...tables].map(([table, [first]]) => [
    `/${table}`,
    first?.view ? { get: {} } : { get: {}, post: {}, patch: {}, delete: {} },
  ])
  const calls = functions.map(({ name: called, names, types, defaults, reads }) => {
    const properties = Object.fromEntries(
      names.map((argument, index) => [argument, { format: types[index] }]),
    )
    const schema = { type: 'object', required: names.slice(0, names.length - defaults), properties }
    const post = { parameters: [{ in: 'body', name: 'args', required: true, schema }] }
    return [`/rpc/${called}`, reads ? { get: {}, post } : { post }]
  })
  return {
    swagger: '2.0',
    info: { version: '13.0.5 (test)', title: `${name} schema` },
    definitions: Object.fromEntries(definitions),
    paths: { '/': {}, ...Object.fromEntries([...paths, ...calls]) },
  }
}

function propertyOf({ table, name, type, length, key, comment, values }: ColumnRow, keys: readonly KeyRow[]) {
  const refers = keys.find(
    (other) => other.table === table && other.columns.length === 1 && other.columns[0] === name,
  )
  const [column] = refers?.refers ?? []
  const notes = [
    ...(key ? ['This is a Primary Key.<pk/>'] : []),
    ...(refers
      ? [`This is a Foreign Key to \`${refers.to}.${column}\`.<fk table='${refers.to}' column='${column}'/>`]
      : []),
  ]
  const note =
    notes.length === 0
      ? comment
      : `${comment === null ? '' : `${comment}\n\n`}${['Note:', ...notes].join('\n')}`
  return {
    format: type,
    ...(length !== null && { maxLength: length }),
    ...(note !== null && { description: note }),
    ...(values && { enum: values }),
  }
}
