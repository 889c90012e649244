import type { Chooser } from '#test/chooser.ts'

/** Ids of those whom rows belong to. */
export type People = {
  readonly ada: string
  readonly bea: string
  readonly dan: string
  /** Of the first and the second, cem is a member. */
  readonly organizations: readonly [string, string, string]
}

/** A team that nobody joins. */
export const CLOSED_TEAM = 9
export const TABLES = ['doc', 'item', 'task', 'log', 'gift'] as const
export type TableOf = (typeof TABLES)[number]

/**
 * The text of a row says whom the row was for when it was written. So the bytes of a stream show whether a row of somebody else was in it,
 * whatever has become of the row.
 */
export const textOf = {
  doc: (owner: string, team: number, n: number) => `doc:${owner}:t${team}:n${n};`,
  item: (owner: string) => `item:${owner};`,
  task: (organization: string) => `task:${organization};`,
  gift: (owner: string) => `gift:${owner};`,
}
/** Users of another issuer. */
export const FOREIGN = ['eve', 'fay'] as const
/** In a column of `log` that no stream asks for. */
export const HIDDEN = 'column-that-is-not-asked-for'

/** Keys of `doc`, `item` and `task` are below this. */
const KEYS = 40

const doc = ({ below, of }: Chooser, { ada, bea, dan }: People): string => {
  const [id, n, owner, team] = [below(KEYS), below(10), of([ada, bea, dan]), of([0, 1, 2, 3, CLOSED_TEAM])]
  const row = `insert into doc values (${id}, '${owner}', ${team}, ${n}, '${textOf.doc(owner, team, n)}')`
  const written = (n: string, team = 'team', owner = 'owner') =>
    `text = concat('doc:', ${owner}, ':t', ${team}, ':n', ${n}, ';')`
  return of([
    `${row} on conflict do nothing`,
    `${row} on conflict (id) do update set owner = excluded.owner, team = excluded.team, n = excluded.n, text = excluded.text`,
    `update doc set n = ${n}, ${written(`${n}`)} where id % 7 = ${below(7)}`,
    `update doc set owner = '${owner}', team = ${team}, ${written('n', `${team}`, `'${owner}'`)} where id = ${id}`,
    `update doc set id = ${id + KEYS} where id = ${id} and not exists (select from doc where id = ${id + KEYS})`,
    `delete from doc where id % 9 = ${below(9)}`,
  ])
}

/** Rows with one column that says whose they are. */
const owned = (
  table: 'item' | 'task' | 'gift',
  column: string,
  owners: readonly string[],
  { below, of }: Chooser,
): string => {
  const [id, n, owner] = [below(KEYS), below(10), of(owners)]
  const text = textOf[table](owner)
  const row = `insert into ${table} values (${id}, '${owner}', ${n}, '${text}')`
  return of([
    `${row} on conflict do nothing`,
    `${row} on conflict (id) do update set ${column} = excluded.${column}, n = excluded.n, text = excluded.text`,
    `update ${table} set n = ${n} where id % 5 = ${below(5)}`,
    `update ${table} set ${column} = '${owner}', text = '${text}' where id % 11 = ${below(11)}`,
    `delete from ${table} where id = ${id}`,
  ])
}

/** Keys of `log` are used once, so that the versions of each grow in the order of the commits. */
const log = ({ below, of }: Chooser): string =>
  of([
    `insert into log (n, text) select ${below(10)}, repeat('x', ${of([10, 100, 20_000])}) from generate_series(1, ${1 + below(8)})`,
    `update log set n = ${below(10)}, v = nextval('versions') where id % 5 = ${below(5)}`,
    `update log set text = 'updated', v = nextval('versions') where n = ${below(10)}`,
    `delete from log where id in (select id from log order by id limit ${below(20)})`,
    `delete from log where n = ${below(10)} and id % 2 = 0`,
  ])

const membership = ({ below, of }: Chooser, { ada, bea }: People): string => {
  const [user, team] = [of([ada, bea]), below(4)]
  return of([
    `insert into team values ('${user}', ${team}) on conflict do nothing`,
    `delete from team where user_id = '${user}' and team = ${team}`,
  ])
}

/** More keys than a batch tells. */
const MANY = `insert into log (n, text) select 3, 'many' from generate_series(1, 10500); delete from log where text = 'many'`

/** Rows as COPY reads them. A key that is there already takes all of them back. */
export function copied(choose: Chooser, people: People): { readonly into: string; readonly rows: string } {
  const { below, of } = choose
  if (of([true, false])) {
    const rows = Array.from({ length: 1 + below(30) }, () => `${below(10)}\tcopied\n`)
    return { into: 'log (n, text)', rows: rows.join('') }
  }
  const first = below(KEYS)
  const rows = Array.from({ length: 1 + below(3) }, (_, index) => {
    const owner = of([people.ada, people.bea, people.dan])
    return `${first + index}\t${owner}\t${below(10)}\t${textOf.item(owner)}\n`
  })
  return { into: 'item (id, owner, n, text)', rows: rows.join('') }
}

export function statement(choose: Chooser, people: People): string {
  const { below, of } = choose
  const luck = below(200)
  if (luck === 0) return MANY
  if (luck < 4) return `truncate ${of(TABLES)}`
  return of([
    () => doc(choose, people),
    () => doc(choose, people),
    () => owned('item', 'owner', [people.ada, people.bea, people.dan], choose),
    () => owned('task', 'organization_id', people.organizations, choose),
    () => owned('gift', 'owner', [...FOREIGN, people.ada], choose),
    () => log(choose),
    () => log(choose),
    () => membership(choose, people),
  ])()
}

type Change = {
  readonly there: string
  readonly back: string
  /** In SQL: whether it is there. */
  readonly isThere: string
}

const hasColumn = (table: string, column: string): string =>
  `exists (select from pg_attribute where attrelid = to_regclass('${table}') and attname = '${column}' and not attisdropped)`

/** Of the structure. `back` makes it as it was. */
export const STRUCTURES: readonly Change[] = [
  {
    there: 'alter table doc rename column text to txt',
    back: 'alter table doc rename column txt to text',
    isThere: hasColumn('doc', 'txt'),
  },
  {
    there: 'alter table doc rename column id to nr',
    back: 'alter table doc rename column nr to id',
    isThere: hasColumn('doc', 'nr'),
  },
  {
    there: 'alter table item rename to former_item',
    back: 'alter table former_item rename to item',
    isThere: `to_regclass('former_item') is not null`,
  },
  {
    there: 'alter table log rename to former_log',
    back: 'alter table former_log rename to log',
    isThere: `to_regclass('former_log') is not null`,
  },
  {
    there: 'alter table log add column more int default 7',
    back: 'alter table log drop column more',
    isThere: hasColumn('log', 'more'),
  },
  {
    there: 'alter table task disable trigger user',
    back: 'alter table task enable trigger user',
    isThere: `exists (select from pg_trigger where tgrelid = to_regclass('task') and tgenabled = 'D')`,
  },
  {
    there: 'revoke select on item from member',
    back: 'grant select on item to member',
    isThere: `to_regclass('item') is not null and not has_table_privilege('member', 'item', 'select')`,
  },
]

const CLAIM = (name: string) =>
  `(nullif(current_setting('request.claims', true), '')::json ->> '${name}')::uuid`

const SEEN = `owner = ${CLAIM('user_id')}`
/** Which rows of `doc` a stranger sees: never those whose n is 0, 2, 6 or 8. Members see their own, and some of their teams. */
export const POLICIES = [
  'alter policy odd on doc using (n % 2 = 1)',
  'alter policy odd on doc using (n % 3 = 1)',
  'begin; drop policy odd on doc; create policy odd on doc for select to stranger using (n % 2 = 1); commit',
  `alter policy own on doc using (${SEEN})`,
  `alter policy own on doc using (${SEEN} or team in (select team from public.team))`,
  `alter policy own on team using (user_id = ${CLAIM('user_id')} and team > 1)`,
  `alter policy own on team using (user_id = ${CLAIM('user_id')})`,
]

export const SCHEMA = `
create sequence versions;
create table team (user_id uuid, team int, primary key (user_id, team));
create table doc (id int primary key, owner uuid, team int, n int, text text);
create table item (id int primary key, owner uuid, n int, text text);
create table task (id int primary key, organization_id uuid, n int, text text);
create table gift (id int primary key, owner text, n int, text text);
create table log (id bigint generated always as identity primary key, n int, text text, v bigint not null default nextval('versions'), hidden text default '${HIDDEN}');
alter table team enable row level security; alter table doc enable row level security;
alter table item enable row level security; alter table task enable row level security;
alter table gift enable row level security;
create policy own on team for select to member using (user_id = ${CLAIM('user_id')});
create policy own on doc for select to member using (${SEEN} or team in (select team from public.team));
create policy odd on doc for select to stranger using (n % 2 = 1);
create policy own on item for select to member using (owner = (select ${CLAIM('user_id')}));
create policy own on task for select to member using (organization_id = (select ${CLAIM('organization_id')}));
create policy own on gift for select to member using (owner = nullif(current_setting('request.claims', true), '')::json ->> 'user_id');
grant select on team, doc, item, task, gift to member; grant select on doc to stranger`
