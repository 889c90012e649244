/** A request on table `vault`, and the rights to the table that it needs. */
export type Shape = {
  readonly kind: 'fetch' | 'data' | 'count' | 'insert' | 'update' | 'delete'
  readonly needs: readonly ('read' | 'write' | 'delete')[]
  readonly body: Readonly<Record<string, unknown>>
  readonly headers?: Readonly<Record<string, string>>
}

export const VAULT_TABLES = `
  create table person (id int primary key, email_address text);
  create table vault (
    id int primary key, secret text not null, note text check (note <> 'forbidden'), owner int constraint owned_by references person,
    tags text[], page tsvector, made timestamptz default now(), hidden text not null default 'x');
  create table entry (id int primary key, vault_id int constraint entry_of_vault references vault);
  create function betray() returns trigger language plpgsql as
    $$ begin raise exception 'the secret is %', old.secret; end $$;
  create trigger betray before update on vault for each row when (new.note = 'betray') execute function betray()`

/** Row 1 always exists, row 9 never. Row 3 is referenced by an entry. */
export const vaultRows = (secret: string) => `
  delete from entry; delete from vault; delete from person;
  insert into person values (1, 'ada@example.com');
  insert into vault values (1, '${secret}', 'n', 1), (2, 'other', null, null), (3, '${secret}', 'kept', null);
  insert into entry values (1, 3)`

const BY_KEY = { conditions: [{ eq_column: 'id', eq_value: 1 }] }

/** Body members that make an operation read rows or columns, for any body with conditions. */
const looking = (guess: string): Readonly<Record<string, Readonly<Record<string, unknown>>>> => ({
  'equality on another column': { conditions: [{ eq_column: 'secret', eq_value: guess }] },
  'equality on the key and another column': {
    conditions: [...BY_KEY.conditions, { column: 'secret', value: guess }],
  },
  'a list of keys': { conditions: [{ column: 'id', operator: 'in', value: [1, 9] }] },
  'a range of keys': { conditions: [{ column: 'id', operator: 'gte', value: 1 }] },
  'no key': { conditions: [{ column: 'id', value: null }] },
  'a pattern': { conditions: [{ column: 'secret', operator: 'like', value: `${guess.slice(0, 2)}%` }] },
  'a pattern beside the key': {
    conditions: [...BY_KEY.conditions, { column: 'secret', operator: 'ilike', value: guess }],
  },
  'an order': { conditions: [{ column: 'secret', operator: 'gt', value: guess }] },
  inequality: { conditions: [{ column: 'secret', operator: 'neq', value: guess }] },
  'is null': { conditions: [{ column: 'note', operator: 'is', value: null }] },
  'an array': { conditions: [{ column: 'tags', operator: 'contains', value: [guess] }] },
  'a search': { conditions: [{ column: 'page', operator: 'fts', value: guess }] },
  or: { conditions: [{ operator: 'or', value: `id.eq.1,secret.eq.${guess}` }] },
  'or of one': { conditions: [{ operator: 'or', value: 'id.eq.1' }] },
  not: { conditions: [{ operator: 'not', value: 'id.eq.9' }] },
  'a cast of the column': { conditions: [{ column: 'secret', value: '1', column_cast: 'integer' }] },
  'a cast of the key': { conditions: [{ eq_column: 'id', eq_value: '1', eq_column_cast: 'text' }] },
  'a cast of the value': { conditions: [{ column: 'id', value: '1', value_cast: 'integer' }] },
  'structured conditions': { where: { secret: guess } },
  'structured conditions as a list': { where_filters: [{ column: 'secret', value: guess }] },
  'conditions and structured ones': { ...BY_KEY, where: { secret: guess } },
  'an unknown column': { conditions: [{ column: 'secrets', value: guess }] },
  'a sort': { ...BY_KEY, sort_by: { field: 'secret' } },
  'a sort by another name': { ...BY_KEY, sortBy: 'secret' },
  'a sort by a third name': { ...BY_KEY, order_by: { field: 'secret', direction: 'desc' } },
  'a structured sort': { ...BY_KEY, orderBy: { column: 'secret' } },
  'a sort by an unknown column': { ...BY_KEY, sort_by: { field: 'secrets' } },
  'a limit': { ...BY_KEY, limit: 1 },
  'a limit of zero': { ...BY_KEY, limit: 0 },
  'an offset': { ...BY_KEY, offset: 1 },
  'a count': { ...BY_KEY, count: 'exact', head: true },
  'an estimate': { ...BY_KEY, count: 'planned' },
  'columns to return': { ...BY_KEY, columns: ['secret'] },
  'all columns to return': { ...BY_KEY, columns: '*' },
  'a cast of a column to return': { ...BY_KEY, columns: ['secret::integer'] },
  'columns to return, and no rows': { ...BY_KEY, columns: ['secret'], head: true },
  'unknown columns to return': { ...BY_KEY, columns: ['secrets'] },
  'structured columns to return': { ...BY_KEY, select: { secret: true } },
  'no condition': { allow_unbounded: true },
})

/** Body members that read no rows or columns. */
const BLIND: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'the key': BY_KEY,
  'a key without a row': { conditions: [{ column: 'id', value: 9 }] },
  'the key of a referenced row': { conditions: [{ column: 'id', value: 3 }] },
  'the key, structured': { where: { id: 1 } },
  'the key as a list of structured conditions': { where_filters: [{ eq_column: 'id', eq_value: 1 }] },
  'the key, and no rows': { ...BY_KEY, head: true },
  'the key, without nulls': { ...BY_KEY, strip_nulls: true },
  'the key twice': { conditions: [...BY_KEY.conditions, { column: 'id', value: 9 }] },
  'the key with an empty list of columns': { ...BY_KEY, columns: [] },
}

const SET = { note: 'new' }
const ROW = { id: 9, secret: 'mine' }

/** All shapes, by name. `guess` is the caller's guess of the secret value. */
export function shapes(guess: string): Readonly<Record<string, Shape>> {
  const found: Record<string, Shape> = {}
  const add = (kind: Shape['kind'], name: string, needs: Shape['needs'], body: object, more: object = {}) => {
    found[`${kind}: ${name}`] = { kind, needs, body: { table_name: 'vault', ...body }, ...more }
  }
  for (const [name, body] of Object.entries({ ...looking(guess), ...BLIND })) {
    const needs = name in BLIND ? [] : (['read'] as const)
    const { allow_unbounded: _, ...rest } = body
    add('fetch', name, ['read'], rest)
    // A count takes only some of these members.
    if (Object.keys(body).every((key) => ['conditions', 'where', 'where_filters', 'count'].includes(key)))
      add('count', name, ['read'], body)
    add('update', name, ['write', ...needs], { set: SET, ...body })
    add('delete', name, ['delete', ...needs], body)
  }
  add('fetch', 'a page', ['read'], { current_page: 1, page_size: 1, total_pages: 1 })
  add('fetch', 'groups', ['read'], {
    group_by: 'secret',
    aggregation_column: 'id',
    aggregation_strategy: 'cumulative_sum',
    aggregation_dedup: true,
  })
  add('fetch', 'groups of time', ['read'], { group_by: 'made', time_granularity: 'day' })
  add('data', 'one condition', ['read'], { eq_column: 'secret', eq_value: guess })
  add('data', 'the key', ['read'], { eq_column: 'id', eq_value: '1' })
  add('update', 'new values as data', ['write'], { data: SET, ...BY_KEY })
  add('update', 'new values as update_body', ['write'], { update_body: SET, ...BY_KEY })
  add('update', 'new values as a list', ['write'], { columns: [{ column: 'note', value: 'new' }], ...BY_KEY })
  add('update', 'a new secret', ['write'], { set: { secret: guess }, ...BY_KEY })
  add('delete', 'resource_id', ['delete'], { resource_id: 1 })
  add('delete', 'resource_id and the key', ['delete'], { resource_id: 1, ...BY_KEY })
  add('delete', 'resource_id and more', ['delete', 'read'], { resource_id: 1, where: { secret: guess } })
  for (const [kind, right] of [
    ['update', 'write'],
    ['delete', 'delete'],
  ] as const) {
    const single = { single: true, ...(kind === 'update' && { set: SET }) }
    add(kind, 'a single row by its key', [right], { ...single, ...BY_KEY })
    add(kind, 'a single row by another column', [right, 'read'], { ...single, where: { secret: guess } })
  }
  add('insert', 'a row', ['write'], { insert_body: ROW })
  add('insert', 'rows', ['write'], { insert_body: [ROW, { ...ROW, id: 10, note: 'x' }] })
  add('insert', 'a row, no rows back', ['write'], { insert_body: ROW, head: true })
  add('insert', 'a row, null for missing columns', ['write'], {
    insert_body: { ...ROW, hidden: 'x' },
    default_to_null: true,
  })
  add('insert', 'a row, without nulls', ['write'], { insert_body: ROW, strip_nulls: true })
  add(
    'insert',
    'a row in a window',
    ['write'],
    { insert_body: ROW },
    { headers: { 'x-service-insert-window': '1' } },
  )
  add('insert', 'columns to return', ['write', 'read'], { insert_body: ROW, columns: 'secret' })
  add('insert', 'the key to return', ['write', 'read'], { insert_body: ROW, columns: ['id'] })
  add('insert', 'structured columns to return', ['write', 'read'], { insert_body: ROW, select: { id: true } })
  add('insert', 'a relation to return', ['write', 'read'], {
    insert_body: ROW,
    columns: 'person(email_address)',
  })
  add('insert', 'a row that is skipped if its key exists', ['write'], {
    insert_body: { ...ROW, id: 1 },
    on_conflict: 'id',
  })
  add('insert', 'a row that updates an existing one', ['write'], {
    insert_body: { ...ROW, id: 1 },
    on_conflict: ['id'],
    update_body: { note: 'new' },
  })
  for (const on_conflict of ['secret', 'secrets', 'id,secret'])
    add('insert', `conflict on ${on_conflict}`, ['write', 'read'], {
      insert_body: { ...ROW, secret: guess },
      on_conflict,
    })
  return found
}

/** Writes that the database rejects. Its error messages must not reveal data either. */
export const REFUSED: Readonly<Record<string, Pick<Shape, 'kind' | 'body'>>> = {
  'an existing key': { kind: 'insert', body: { insert_body: { ...ROW, id: 1 } } },
  'an unknown column': { kind: 'insert', body: { insert_body: { ...ROW, secrets: 1 } } },
  'a value that does not fit': { kind: 'insert', body: { insert_body: { ...ROW, id: 'x' } } },
  'a missing value': { kind: 'insert', body: { insert_body: { id: 9 } } },
  'null for a required value': { kind: 'insert', body: { insert_body: { id: 9, secret: null } } },
  'an unknown owner': { kind: 'insert', body: { insert_body: { ...ROW, owner: 99 } } },
  'a value that violates a check': { kind: 'insert', body: { insert_body: { ...ROW, note: 'forbidden' } } },
  'a duplicate key in one call': { kind: 'insert', body: { insert_body: [ROW, ROW] } },
  'a new value that violates a check': { kind: 'update', body: { set: { note: 'forbidden' }, ...BY_KEY } },
  'a trigger whose error message contains the secret': {
    kind: 'update',
    body: { set: { note: 'betray' }, ...BY_KEY },
  },
  'a new key that exists already': { kind: 'update', body: { set: { id: 2 }, ...BY_KEY } },
  'an unknown new owner': { kind: 'update', body: { set: { owner: 99 }, ...BY_KEY } },
  'a new value for an unknown column': { kind: 'update', body: { set: { noet: 1 }, ...BY_KEY } },
  'a new value that does not fit': { kind: 'update', body: { set: { made: 'x' }, ...BY_KEY } },
  'a key that does not fit': {
    kind: 'update',
    body: { set: SET, conditions: [{ column: 'id', value: 'x' }] },
  },
  'a referenced row': { kind: 'delete', body: { conditions: [{ column: 'id', value: 3 }] } },
  'a key to delete that does not fit': { kind: 'delete', body: { resource_id: 'x' } },
}
