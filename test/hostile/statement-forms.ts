/** Names of a schema, its tables, their columns and a function. */
export type Names = Readonly<Record<(typeof PARTS)[number], string>>
const PARTS = [
  'schema',
  'parent',
  'table',
  'key',
  'text',
  'number',
  'json',
  'list',
  'ref',
  'routine',
  'argument',
  'alias',
] as const

/** Names that begin with one of the texts, at most 63 bytes long. */
export function namesFrom(...texts: readonly string[]): Names {
  const name = (at: number) => `${cut(texts[at % texts.length] ?? '')}${String.fromCharCode(97 + at)}`
  return Object.fromEntries(PARTS.map((part, at) => [part, name(at)])) as Names
}

const cut = (text: string): string =>
  Buffer.byteLength(text) <= 58 ? text : cut([...text].slice(0, -1).join(''))

export const HOSTILE = [
  `"; drop table canary; --`, `'; drop table canary; --`, `x"); delete from canary where ("a" = "a`, `' or 1=1 --`, `') union select * from canary --`,
  `1; drop table canary`, `Robert'); DROP TABLE canary;--`, '$1', '$$; drop table canary; $$', '$tag$', '--', '/*', '*/ drop table canary /*', '\\', '\\"', "\\'; drop table canary; --",
  'a\nb; drop table canary;\n', '\r\n', '\t', `U&"\\0022"`, `E'\\''`, 'ʼ; drop table canary; --', '＂; drop table canary; ＂', '‘ or ’1’=’1', '“”',
  '%s%', '::text', 'now()', '(select 1)', 'a"."b', '"', '""', 'canary', 'public.canary', 'or(a.eq.1)', 'eq.1,b.is.null', 'a as b', 'null', '\u0001', '\u202e', '😀', 'İı',
] as const // biome-ignore format: a table

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`

/** SQL that creates a schema with two tables, a foreign key and a function. */
export function structureSql(n: Names): string {
  const [schema, table, parent] = [quoted(n.schema), quoted(n.table), quoted(n.parent)]
  return `
    create schema ${schema};
    create table ${schema}.${parent} (${quoted(n.key)} text primary key, ${quoted(n.text)} text);
    create table ${schema}.${table} (
      ${quoted(n.key)} text primary key default gen_random_uuid()::text, ${quoted(n.text)} text, ${quoted(n.number)} numeric, ${quoted(n.json)} jsonb,
      ${quoted(n.list)} text[], ${quoted(n.ref)} text references ${schema}.${parent});
    create function ${schema}.${quoted(n.routine)}(${quoted(n.argument)} text)
      returns table (${quoted(n.text)} text) language sql as 'select $1';
    insert into ${schema}.${parent} values ('p', 'parent');
    insert into ${schema}.${table} (${quoted(n.key)}, ${quoted(n.number)}) values ('1', 1), ('2', 2);`
}

export type Request = {
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

const grammarQuoted = (text: string) => `"${text.replace(/["\\]/g, (sign) => `\\${sign}`)}"`

/** One request of every form, with `value` wherever a value is allowed. `turn` must be unique. */
export function requestsOf(n: Names, value: string, turn: number): readonly Request[] {
  const target = { table_name: quoted(n.table), schema_name: n.schema }
  const conditions = conditionsOf(n, value)
  const row = { [n.text]: value, [n.json]: { [value]: [value] }, [n.list]: [value, null] }
  const chosen = [{ operator: 'eq', column: n.text, value }]
  const post = (path: string, body: object): Request => ({ method: 'POST', path, body })
  const write = (path: string, body: object): Request => post(path, { ...target, ...body })
  const sort_by = [{ field: n.text, direction: 'desc', nulls: 'last' }, { column: n.key }]
  const columns = [
    grammarQuoted(n.key),
    `${grammarQuoted(n.alias)}:${grammarQuoted(n.text)}::text`,
    `${grammarQuoted(n.number)} as ${grammarQuoted(value.slice(0, 20))}`,
  ]
  const related = `${grammarQuoted(n.ref)}(${grammarQuoted(n.key)}, ${grammarQuoted(n.alias)}:${grammarQuoted(n.text)})`
  const routine = { function: quoted(n.routine), schema: n.schema, select: grammarQuoted(n.text) }
  return [
    write('/gateway/fetch', { conditions, columns: [...columns, related], sort_by, limit: 5, offset: 2, count: 'exact' }),
    write('/gateway/fetch', { columns: [`${grammarQuoted(n.schema)}.${grammarQuoted(n.table)}.*`], strip_nulls: true }),
    write('/gateway/fetch', { where: { [n.key]: { eq: value, in: [value] }, or: [{ [n.key]: value }] }, select: { [n.alias]: n.text }, head: true, count: 'planned' }),
    write('/gateway/fetch', { group_by: n.text, aggregation_column: n.number, aggregation_strategy: 'cumulative_sum', aggregation_dedup: true }),
    write('/query/count', { conditions, count: 'estimated' }),
    { method: 'GET', path: `/data?${new URLSearchParams({ view: `${quoted(n.schema)}.${quoted(n.table)}`, eq_column: n.text, eq_value: value, columns: grammarQuoted(n.key), sort_by: n.key, limit: '3', group_by: n.text })}` },
    { method: 'PUT', path: '/gateway/insert', body: { ...target, insert_body: row } },
    write('/gateway/insert', { insert_body: [{ ...row, [n.key]: `${value} ${turn}` }, { [n.text]: value }], columns: related }),
    write('/gateway/insert', { insert_body: { ...row, [n.key]: `${value} ${turn}` }, on_conflict: [n.key], update_body: { [n.text]: value } }),
    write('/gateway/update', { conditions: chosen, set: { [n.text]: value, [n.list]: [value] }, sort_by, limit: 3, offset: 1 }),
    write('/gateway/update', { conditions: chosen, columns: [{ column: n.json, value: { [value]: value } }] }),
    write('/gateway/delete', { resource_id: value, conditions: chosen }),
    { method: 'DELETE', path: '/gateway/delete', body: { ...target, conditions: chosen, sort_by, limit: 1 } },
    {
      ...post('/gateway/transaction', {
        operations: [
          { id: value, kind: 'insert', payload: { ...target, insert_body: row } },
          { id: 'update', kind: 'update', payload: { ...target, conditions: chosen, set: { [n.text]: value } } },
          { id: 'fetch', kind: 'fetch', payload: { ...target, conditions: chosen, limit: 2 } },
          { id: 'delete', kind: 'delete', payload: { ...target, conditions: chosen } },
        ],
        options: { isolation_level: 'repeatable_read' },
      }),
      headers: { 'idempotency-key': `' or 1=1 -- ${turn}` },
    },
    post('/gateway/rpc', { ...routine, args: { [n.argument]: value }, filters: [{ column: n.text, operator: 'eq', value }], order: { column: n.text, ascending: false }, limit: 2, count: 'exact' }),
    { method: 'GET', path: `/rpc/${encodeURIComponent(quoted(n.routine))}?${new URLSearchParams({ schema: n.schema, [n.argument]: value })}` },
  ] // biome-ignore format: a table
}

function conditionsOf(n: Names, value: string): readonly unknown[] {
  const column = n.text
  const term = `${grammarQuoted(n.text)}.eq.${grammarQuoted(value)}`
  return [
    ...['neq', 'gt', 'lt', 'gte', 'lte', 'fts'].map((operator) => ({ operator, column, value })),
    // A trailing backslash would be an incomplete escape.
    ...['like', 'ilike'].map((operator) => ({ operator, column, value: `${value}%` })),
    { operator: 'in', column, value: [value, null] },
    { operator: 'contains', column: n.list, value: [value] },
    { operator: 'contains', column: n.json, value: { [value]: value } },
    { operator: 'overlaps', column: n.list, value: [value] },
    { operator: 'is', column, value: 'null' },
    { eq_column: column, eq_value: value, eq_column_cast: 'text', eq_value_cast: 'varchar' },
    { operator: 'eq', column: n.number, value, column_cast: 'text' },
    { operator: 'or', value: `${term},not(${term}),and(${grammarQuoted(n.key)}.in.(${grammarQuoted(value)},null),${grammarQuoted(n.number)}::text.not.like.${grammarQuoted(`${value}%`)})` },
    { operator: 'not', column, value: `eq.${grammarQuoted(value)}` },
  ] // biome-ignore format: a table
}

/** Requests with `text` in names and keywords, which must be rejected because nothing in the database matches. */
export function refusedWith(text: string): readonly Request[] {
  const fetch = (body: object): Request => ({
    method: 'POST',
    path: '/gateway/fetch',
    body: { table_name: 'canary', ...body },
  })
  const post = (path: string, body: object): Request => ({ method: 'POST', path, body })
  const eq = { operator: 'eq', column: 'id', value: 1 }
  const data = (query: Record<string, string>): Request => ({
    method: 'GET',
    path: `/data?${new URLSearchParams({ view: 'canary', eq_column: 'id', eq_value: '1', ...query })}`,
  })
  return [
    fetch({ table_name: `canary${text}` }),
    fetch({ schema_name: `public${text}` }),
    fetch({ columns: [grammarQuoted(`id${text}`)] }),
    fetch({ columns: [`id::text${text}`] }),
    fetch({ columns: [`${grammarQuoted(`canary${text}`)}(id)`] }),
    fetch({ columns: [`id as ${grammarQuoted(text.padEnd(64, 'x'))}`] }),
    fetch({ sort_by: { field: `id${text}` } }),
    fetch({ sort_by: { field: 'id', direction: `asc${text}` } }),
    fetch({ sort_by: { field: 'id', nulls: `last${text}` } }),
    fetch({ limit: `1${text}` }),
    fetch({ offset: `1${text}` }),
    fetch({ count: `exact${text}` }),
    fetch({ conditions: [{ ...eq, column: `id${text}` }] }),
    fetch({ conditions: [{ ...eq, operator: `eq${text}` }] }),
    fetch({ conditions: [{ ...eq, operator: 'is', value: `null${text}` }] }),
    fetch({ conditions: [{ ...eq, column_cast: `text${text}` }] }),
    fetch({ conditions: [{ ...eq, value_cast: `integer${text}` }] }),
    fetch({ conditions: [{ operator: 'or', value: `${grammarQuoted(`id${text}`)}.eq.1` }] }),
    fetch({ conditions: [{ operator: 'or', value: `id.eq${text}.1` }] }),
    fetch({ conditions: [{ operator: 'not', value: `id::text${text}.eq.1` }] }),
    fetch({ where: { [`id${text}`]: 1 } }),
    fetch({ where: { id: { [`eq${text}`]: 1 } } }),
    fetch({ select: { alias: `id${text}` } }),
    fetch({ group_by: `id${text}` }),
    fetch({ group_by: 'id', time_granularity: `day${text}` }),
    fetch({ group_by: 'id', aggregation_column: `id${text}` }),
    fetch({ conditions: [{ ...eq, value: `${text}\0` }] }),
    post('/query/count', { table_name: 'canary', conditions: [{ ...eq, column: `id${text}` }] }),
    post('/gateway/insert', { table_name: 'canary', insert_body: { [`id${text}`]: 1 } }),
    post('/gateway/insert', { table_name: 'canary', insert_body: { id: 9 }, on_conflict: [`id${text}`] }),
    post('/gateway/update', { table_name: 'canary', set: { [`id${text}`]: 1 }, conditions: [eq] }),
    post('/gateway/update', { table_name: 'canary', set: { id: 1 }, conditions: [eq], limit: `1${text}` }),
    post('/gateway/delete', { table_name: `canary${text}`, resource_id: 1 }),
    post('/gateway/delete', { table_name: 'canary', conditions: [{ ...eq, column: `id${text}` }] }),
    post('/gateway/transaction', { operations: [{ id: 'a', kind: `fetch${text}`, payload: { table_name: 'canary' } }] }),
    post('/gateway/transaction', { operations: [{ id: 'a', kind: 'delete', payload: { table_name: 'canary', conditions: [eq] } }, { id: 'b', kind: 'fetch', payload: { table_name: `canary${text}` } }] }),
    post('/gateway/transaction', { operations: [{ id: 'a', kind: 'fetch', payload: { table_name: 'canary' } }], options: { isolation_level: `serializable${text}` } }),
    post('/gateway/rpc', { function: `lower${text}` }),
    post('/gateway/rpc', { function: 'greet', args: { [`name${text}`]: 'x' } }),
    post('/gateway/rpc', { function: 'greet', args: { name: 'x' }, order: `greet${text}.desc` }),
    data({ view: `canary${text}` }),
    data({ eq_column: `id${text}` }),
    data({ columns: grammarQuoted(`id${text}`) }),
    data({ sort_by: `id${text}` }),
    data({ sort_direction: `asc${text}` }),
    data({ limit: `1${text}` }),
  ] // biome-ignore format: a table
}
