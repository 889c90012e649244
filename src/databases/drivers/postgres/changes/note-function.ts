import { hash } from 'node:crypto'
import { MAX_KEYS, MAX_NOTE_BYTES } from '#databases/drivers/postgres/changes/limits.ts'
import { literal } from '#databases/drivers/postgres/sql/parse-tree.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'

/** Names of all functions and tables of the feed begin so. */
export const FEED_NAME = 'service_changes'

/** A column of a primary key. */
export type KeyColumn = {
  readonly name: string
  /** The base type below any domain. */
  readonly type: number
  /** Its values have one form, in JSON and in the text of the database in every session: no array, composite, range, name of an object or money. */
  readonly isPlain: boolean
  /** No setting changes how its values are written. */
  readonly isFixed: boolean
}

/**
 * A trigger function of the feed. Tables whose keys have the same columns share it: it writes the number of its table. It is made only where it
 * is missing, since another version of it is a change of all these tables.
 */
type NoteFunction = { readonly name: string; readonly create: string }

/** `key`: of a live table. Without one, the function notes that the table has changed, but not which rows. */
export function noteFunction(key: readonly KeyColumn[]): NoteFunction {
  const body = key.length === 0 ? BODY_OF_WATCHED : bodyOf(key)
  const settings = key.every(({ isFixed }) => isFixed) ? '' : FIXED_SETTINGS
  const name = `${FEED_NAME}_${hash('sha256', settings + body).slice(0, 16)}`
  return {
    name,
    create: `do ${literal(`begin
  if not exists (
    select from pg_catalog.pg_proc p where p.oid operator(pg_catalog.=) pg_catalog.to_regprocedure('public.${name}()')
      and p.prosecdef and p.prosrc operator(pg_catalog.=) ${literal(body)} and pg_catalog.pg_has_role(p.proowner, 'usage')
  ) then
    create or replace function public.${name}() returns trigger
      language plpgsql security definer set search_path = pg_catalog, pg_temp${settings} as ${literal(body)};
    revoke all on function public.${name}() from public;
  end if;
end`)}`,
  }
}

/** Settings of the writer's session change how values of some types are written. The gateway reads with these. */
const FIXED_SETTINGS = ` set datestyle = 'ISO' set timezone = 'UTC' set intervalstyle = 'iso_8601' set bytea_output = 'hex' set extra_float_digits = 1`

/** `format` of the database fills the body in the same way (OWN_TRIGGERS). */
function bodyOf(key: readonly KeyColumn[]): string {
  const columns = key.map(({ name }) => quoteName(name))
  const keyIn = (row: string) => {
    const values = columns.map((column) => `concat(${row}.${column}) collate "C"`)
    return values.length === 1 ? values.join() : `array[${values.join(', ')}]`
  }
  const parts = [keyIn('o'), keyIn('n')]
  return BODY.replace(/%([12])\$s/g, (_, number) => parts[number - 1] ?? '')
}

/** Row-level security binds also the owner of a table where it is forced. */
const CAN_NOTE = `has_table_privilege('public.${FEED_NAME}', 'insert') and not row_security_active('public.${FEED_NAME}')`

const isLarge = (keys: string) =>
  `array_length(${keys}, 1) > ${MAX_KEYS} or pg_column_size(${keys}) > ${MAX_NOTE_BYTES}`

/**
 * It may not make its writer fail. So everything that can fail is read in a block of its own, whose subtransaction writes nothing and
 * therefore needs no number. `concat` calls the output functions of types, and no cast that a user has defined. A session keeps the plans of
 * its first statement, so sets are compared by operations that have no nested loop.
 */
const BODY = `
declare
  can_note boolean := false;
  reset "char";
  gone text[];
  come text[];
  changed text[];
begin
  begin
    can_note := ${CAN_NOTE};
    if tg_op = 'TRUNCATE' then
      reset := 't';
    else
      if tg_op <> 'INSERT' then
        gone := array(select %1$s from old_rows o limit ${MAX_KEYS + 1});
      end if;
      if tg_op <> 'DELETE' then
        come := array(select %2$s from new_rows n limit ${MAX_KEYS + 1});
      end if;
      if ${isLarge('gone')} or ${isLarge('come')} then
        reset := 'm';
      elsif tg_op = 'UPDATE' then
        if gone = come then
          changed := come;
          gone := null;
          come := null;
        else
          changed := array(select %2$s from new_rows n intersect select %1$s from old_rows o);
          come := array(select %2$s from new_rows n except select %1$s from old_rows o);
          gone := array(select %1$s from old_rows o except select %2$s from new_rows n);
        end if;
      end if;
    end if;
  exception when others then
    reset := 'c';
  end;
  if not can_note then
    return null;
  end if;
  if reset is not null then
    insert into public.${FEED_NAME} (relation, op) values (tg_relid, reset);
    return null;
  end if;
  if gone <> '{}' then
    insert into public.${FEED_NAME} (relation, op, keys) values (tg_relid, 'd', gone);
  end if;
  if come <> '{}' then
    insert into public.${FEED_NAME} (relation, op, keys) values (tg_relid, 'i', come);
  end if;
  if changed <> '{}' then
    insert into public.${FEED_NAME} (relation, op, keys) values (tg_relid, 'u', changed);
  end if;
  return null;
end `

/** A table that only policies read: it needs no primary key. */
const BODY_OF_WATCHED = `
declare
  can_note boolean := false;
  is_changed boolean := true;
begin
  begin
    can_note := ${CAN_NOTE};
    if tg_op = 'INSERT' then
      is_changed := exists (select from new_rows);
    elsif tg_op <> 'TRUNCATE' then
      is_changed := exists (select from old_rows);
    end if;
  exception when others then
    null;
  end;
  if can_note and is_changed then
    insert into public.${FEED_NAME} (relation, op) values (tg_relid, 'w');
  end if;
  return null;
end `

/**
 * Rows of `with` for triggers whose function has exactly such a body for the key of their table, whatever its name: it changes no session and
 * no row of another table.
 */
export const OWN_TRIGGERS = `
own_trigger as (
  select t.oid from pg_catalog.pg_proc p join pg_catalog.pg_trigger t on t.tgfoid = p.oid
  cross join lateral (
    select pg_catalog.format(case when pg_catalog.count(*) = 1 then '%s' else 'array[%s]' end,
        pg_catalog.string_agg(pg_catalog.format('concat(o.%s) collate "C"', k.name), ', ' order by k.place)) as o,
      pg_catalog.format(case when pg_catalog.count(*) = 1 then '%s' else 'array[%s]' end,
        pg_catalog.string_agg(pg_catalog.format('concat(n.%s) collate "C"', k.name), ', ' order by k.place)) as n
    from (
      select pg_catalog.concat('"', pg_catalog.replace(a.attname::pg_catalog.text, '"', '""'), '"') as name, u.place
      from pg_catalog.pg_index i cross join pg_catalog.unnest(i.indkey) with ordinality u(number, place)
      join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = u.number
      where i.indrelid = t.tgrelid and i.indisprimary and u.place <= i.indnkeyatts
    ) k
  ) as key
  where p.proname >= '${FEED_NAME}_' and p.proname < '${FEED_NAME}\`'
    and p.prosrc = any (array[:watched, pg_catalog.format(:body, key.o, key.n)])
)`

/** After the operators of the statement were qualified: those of the bodies are part of a text. */
export const withBodies = (statement: string): string =>
  statement.replace(':watched', () => literal(BODY_OF_WATCHED)).replace(':body', () => literal(BODY))

const EVENTS = {
  insert: 'referencing new table as new_rows',
  update: 'referencing old table as old_rows new table as new_rows',
  delete: 'referencing old table as old_rows',
  truncate: '',
} as const

export const TRIGGERS = Object.keys(EVENTS).map((event) => `${FEED_NAME}_${event}`)

/** `table` is quoted. Always: also in sessions that take the part of a replica. */
export const createTriggers = (table: string, { name }: NoteFunction): readonly string[] =>
  Object.entries(EVENTS).flatMap(([event, referencing]) => [
    `create trigger ${FEED_NAME}_${event} after ${event} on ${table} ${referencing} for each statement execute function public.${name}()`,
    `alter table ${table} enable always trigger ${FEED_NAME}_${event}`,
  ])

export const dropTrigger = (table: string, trigger: string): string =>
  `drop trigger if exists ${trigger} on ${table}`
