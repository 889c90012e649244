import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { testServerUrl, withClient } from '#test/database.ts'
import { type Actor, testService } from '#test/harness.ts'

const t = await testService()
const writer = await t.key(['gateway.write', 'gateway.read'])
const full = await t.key(['gateway.query'])
const reader = await t.key(['gateway.query.read'])
const [observer, locker] = [1, 2].map(() => new pg.Client({ connectionString: t.clientUrl })) as [
  pg.Client,
  pg.Client,
] // of two

before(async () => {
  await Promise.all([observer.connect(), locker.connect()])
  await observer.query(`
    create table item (id int primary key, word text, more jsonb);
    insert into item select n, 'word ' || n, '{"a": [1, 2]}' from generate_series(1, 20) n;
    create table awaited (id int primary key);
    create view words as select word, now() as at from item;
    create function doubled(n int) returns int language sql immutable as 'select n * 2';
    create function total(i item) returns int language sql stable as 'select length(i.word)';
    create function stop(n int) returns boolean language sql as 'select pg_cancel_backend(n)';
    create function stop_two(n int, m int) returns boolean language sql as 'select pg_cancel_backend(n)';
    create function parsed(n int) returns boolean language sql stable begin atomic select pg_catalog.pg_cancel_backend(n); end;
    create function by_default(a int, b boolean default stop(1)) returns boolean language sql stable as 'select b';
    create function state(s int, n int) returns int language sql as 'select case when pg_cancel_backend(n) then 1 end';
    create aggregate stops(int) (sfunc = state, stype = int);
    create operator !!! (function = stop, rightarg = int);
    create operator == (function = stop_two, leftarg = int, rightarg = int);
    create function fits(n int) returns boolean language sql as 'select true';
    create domain fitting as int check (fits(value));
    create table fitted (id int primary key, n fitting);
    insert into fitted values (1, 1);
    create domain stopping as int check (stop(value));
    create domain outer_stopping as stopping;
    create type holder as (n stopping);
    create type made as (n int);
    create function make(n int) returns made language sql as 'select row(pg_cancel_backend(n)::int)::made';
    create cast (int as made) with function make(int);
    create view killer as select pg_cancel_backend(id) as done, id from item;
    create view behind as select done from (select * from killer) k;
    create view by_function as select stop(id) from item;
    create type sly as (n int);
    create function fall(s sly) returns int language sql as 'select pg_cancel_backend(s.n)::int';
    create function rise(n int) returns sly language sql as 'select row(pg_cancel_backend(n)::int)::sly';
    create function tell(s sly) returns json language sql as 'select to_json(pg_cancel_backend(s.n))';
    create cast (sly as int) with function fall(sly) as implicit;
    create cast (int as sly) with function rise(int) as implicit;
    create cast (sly as json) with function tell(sly) as implicit;
    create table slyly (s sly, more sly[]);
    insert into slyly values (row(1)::sly, array[row(1)::sly]);
    create view of_slyly as select s as renamed from slyly;
    create table wholly (n int);
    create function whole(w wholly) returns json language sql as 'select to_json(pg_cancel_backend(w.n))';
    create cast (wholly as json) with function whole(wholly) as implicit;
    create function takes(s sly) returns int language sql stable as 'select 1';
    create function takes_domain(n stopping) returns int language sql stable as 'select 1';
    create function gives() returns sly language sql stable as 'select null::sly';
    create function takes_two(a sly, b sly) returns boolean language sql stable as 'select true';
    create operator ##~ (leftarg = sly, rightarg = sly, function = takes_two);
    create function differ(a int, b int) returns boolean language sql stable as 'select true';
    create operator ~~~~ (leftarg = int, rightarg = int, function = differ, negator = !~~~~);
    create operator !~~~~ (leftarg = int, rightarg = int, function = stop_two, negator = ~~~~);
    create view negated as select id from item where not (id operator(public.~~~~) 1);
    create schema other;
    create function other.stop_elsewhere(n int) returns boolean language sql as 'select pg_cancel_backend(n)'`)
})
test.after(() => Promise.all([observer.end(), locker.end()]))

const sql = (who: Actor, query: string, more: object = {}) => who.post('/gateway/query', { query, ...more })

/** Runs the work while an insert of a data operation waits for a lock. */
async function withVictim(work: (pid: number, isThere: () => Promise<boolean>) => Promise<void>) {
  await locker.query('begin; lock table awaited in access exclusive mode')
  const insert = writer.send('PUT', '/gateway/insert', {
    body: { table_name: 'awaited', insert_body: { id: 1 } },
  })
  const waiting = async () => {
    const { rows } = await observer.query<{ pid: number }>(
      `select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database() and pid <> pg_backend_pid()`,
    )
    return rows[0]?.pid
  }
  let pid = await waiting()
  for (let round = 0; pid === undefined && round < 100; round++) {
    await sleep(20)
    pid = await waiting()
  }
  assert.ok(pid)
  await work(pid, async () => (await waiting()) === pid)
  await locker.query('rollback')
  const { status, text } = await insert
  assert.equal(status, 200, text)
}

const HOSTILE: readonly ((pid: number) => string)[] = [
  (pid) => `select pg_terminate_backend(${pid})`,
  (pid) => `select pg_cancel_backend(${pid})`,
  (pid) => `SELECT PG_Catalog.PG_Terminate_Backend(${pid})`,
  (pid) => `select "pg_terminate_backend"(${pid})`,
  (pid) => `select U&"pg\\005fterminate_backend"(${pid})`,
  (pid) => `select U&"pg!005fterminate_backend" uescape '!' (${pid})`,
  (pid) => `select pg_terminate_backend/* ( */ -- )\n (${pid})`,
  (pid) => `select pg_terminate_backend(pid => ${pid}, timeout => 0)`,
  (pid) => `select * from pg_terminate_backend(${pid})`,
  (pid) => `select * from rows from (pg_cancel_backend(${pid}), generate_series(1, 2)) as x(a, b)`,
  (pid) => `select * from item, lateral pg_cancel_backend(${pid} + id - id) x`,
  (pid) => `select n.pg_cancel_backend from generate_series(${pid}, ${pid}) n`,
  (pid) => `select (${pid}).pg_cancel_backend`,
  (pid) => `select ((array[${pid}])[1]).pg_cancel_backend`,
  (pid) => `select (x.n).pg_cancel_backend from (values (${pid})) x(n)`,
  (pid) => `select n."pg_cancel_backend" from generate_series(${pid}, ${pid}) n`,
  (pid) => `with a as (select pg_terminate_backend(${pid})) select * from a`,
  (pid) => `with a as materialized (select pg_terminate_backend(${pid}) x) select 1 from a where x`,
  (pid) => `select (select pg_terminate_backend(${pid}))`,
  (pid) => `select 1 where exists (select from item where pg_cancel_backend(${pid}))`,
  (pid) => `select 1 from item where id in (select pg_cancel_backend(${pid})::int)`,
  (pid) => `select 1 from item order by pg_cancel_backend(${pid})`,
  (pid) => `select 1 from item limit pg_cancel_backend(${pid})::int`,
  (pid) => `select count(*) filter (where pg_cancel_backend(${pid})) from item`,
  (pid) => `select count(*) from item group by pg_cancel_backend(${pid})`,
  (pid) => `select count(*) from item having pg_cancel_backend(${pid})`,
  (pid) => `select row_number() over (order by pg_cancel_backend(${pid})) from item`,
  (pid) => `select distinct on (pg_cancel_backend(${pid})) 1 from item`,
  (pid) => `select a.id from item a join item b on pg_cancel_backend(${pid})`,
  (pid) => `select case when pg_cancel_backend(${pid}) then 1 end`,
  (pid) => `select coalesce(pg_cancel_backend(${pid}), true)`,
  (pid) => `select array[pg_cancel_backend(${pid})]`,
  (pid) => `select 1 from item tablesample bernoulli (pg_cancel_backend(${pid})::int)`,
  (pid) => `select xmlelement(name a, pg_cancel_backend(${pid}))`,
  (pid) => `select json_object('a': pg_cancel_backend(${pid}))`,
  (pid) => `select * from json_table(pg_cancel_backend(${pid})::text::jsonb, '$' columns (a int path '$'))`,
  (pid) => `values (pg_terminate_backend(${pid}))`,
  (pid) => `(select 1) union (select pg_terminate_backend(${pid})::int)`,
  (pid) => `explain analyze select pg_terminate_backend(${pid})`,
  (pid) => `explain (analyze, format json) select 1 from item where pg_cancel_backend(${pid})`,
  (pid) => `select query_to_xml('select pg_terminate_backend(${pid})', true, true, '')`,
  (pid) => `select query_to_xml_and_xmlschema('select pg_terminate_backend(${pid})', true, true, '')`,
  (pid) => `select * from ts_stat('select to_tsvector(pg_terminate_backend(${pid})::text)')`,
  (pid) =>
    `select ts_rewrite('a'::tsquery, 'select to_tsquery(''a''), to_tsquery(pg_cancel_backend(${pid})::text)')`,
  () => `select table_to_xml('killer', true, true, '')`,
  () => `select schema_to_xml('public', true, true, '')`,
  () => `select database_to_xml(true, true, '')`,
  (pid) => `select stop(${pid})`,
  (pid) => `select other.stop_elsewhere(${pid})`,
  (pid) => `select (${pid}).stop`,
  (pid) => `select parsed(${pid})`,
  () => `select by_default(1)`,
  (pid) => `select stops(${pid})`,
  (pid) => `select stops(${pid}) over ()`,
  (pid) => `select !!! ${pid}`,
  (pid) => `select operator(public.!!!) ${pid}`,
  (pid) => `select ${pid} == any (array[1])`,
  (pid) => `select ${pid}::stopping`,
  (pid) => `select cast(${pid} as outer_stopping)`,
  (pid) => `select stopping '${pid}'`,
  (pid) => `select row(${pid})::holder`,
  (pid) => `select * from json_to_record('{"a": ${pid}}') as x(a stopping)`,
  (pid) => `select ${pid}::made`,
  (pid) => `select made(${pid})`,
  (pid) => `select (${pid}).made`,
  () => 'select s + 1 from slyly',
  () => 'select * from slyly where s = 1',
  () => 'select renamed + 1 from of_slyly',
  () => 'select to_json(s) from slyly',
  () => 'select json_agg(s) from slyly',
  () => 'select (more)[1] + 1 from slyly',
  () => 'select to_json(more) from slyly',
  () => 'select to_json(w) from wholly w',
  () => 'select to_json(x) from (select w from wholly w) x',
  () => 'select gives() + 1',
  (pid) => `select takes(${pid})`,
  (pid) => `select takes_domain(${pid})`,
  (pid) => `select ${pid} ##~ ${pid}`,
  (pid) => `select not (${pid} ~~~~ 1)`,
  () => 'select * from negated',
  () => `select * from killer`,
  () => `table killer`,
  () => `select * from behind`,
  () => `select * from public.by_function`,
  () => `explain analyze select * from item where id in (select id from killer)`,
  () => `select set_config('statement_timeout', '0', false)`,
  () => `select set_config('role', 'none', true)`,
  (pid) => `select pg_input_is_valid('${pid}', 'stopping')`,
  () => `select pg_sleep(20)`,
  () => `select pg_advisory_lock(1)`,
  () => `select pg_notify('channel', 'word')`,
  () => `select pg_reload_conf()`,
  () => `select lo_create(0)`,
  () => `select pg_read_file('postgresql.conf')`,
]

test('the right to read cannot cancel statements, terminate connections or change session state', async () => {
  const { rows } = await observer.query(
    `select current_setting('server_version_num')::int < 160000 as before`,
  )
  const isBefore16 = rows[0].before
  await withVictim(async (pid, isThere) => {
    for (const text of HOSTILE) {
      const query = text(pid)
      const answer = await sql(reader, query)
      // These functions do not exist in PostgreSQL 15.
      const isUnknown = query.includes('pg_input_') && isBefore16
      const refusal = isUnknown ? [400, 'invalid_sql'] : [403, 'function_not_allowed']
      assert.deepEqual([answer.status, answer.body.code], refusal, `${query}: ${answer.text}`)
      assert.ok(await isThere(), query)
    }
    for (const query of [
      `do $$ begin perform pg_terminate_backend(${pid}); end $$`,
      `call x(${pid})`,
      'copy item to stdout',
    ]) {
      assert.equal((await sql(reader, query)).status, 403, query)
    }
    for (const query of [
      `select 1; select pg_terminate_backend(${pid})`,
      'select (',
      `select ${'('.repeat(9_000)}1`,
    ]) {
      assert.ok([400, 403].includes((await sql(reader, query)).status), query)
    }
    const params = await sql(reader, 'select pg_terminate_backend($1)', { params: [pid] })
    assert.equal(params.status, 403)
    const elsewhere = await sql(reader, `select stop_elsewhere(${pid})`, { schema_name: 'other' })
    assert.equal(elsewhere.status, 403)
    assert.ok(await isThere())
  })
})

test('a cast between types of the system that a superuser has made is followed, which no name of a statement tells', async () => {
  const database = Object.assign(new URL(testServerUrl()), { pathname: new URL(t.clientUrl).pathname }).href
  const query = `select 1 ~= point '(1,1)'`
  await withClient(database, async (superuser) => {
    await superuser.query(`create function placed(n int) returns point language sql as
      'select point(pg_cancel_backend(n)::int, 1)'; create cast (int as point) with function placed(int) as implicit`)
    const refused = await sql(reader, query)
    assert.deepEqual([refused.status, refused.body.code], [403, 'function_not_allowed'])
    await superuser.query('drop function placed cascade')
  })
})

test('the error names the function and the required right', async () => {
  const { body } = await sql(reader, 'select * from behind')
  assert.match(body.message, /pg_catalog\.pg_cancel_backend/)
  assert.match(body.error, /gateway\.query.*sql_role/)
  assert.deepEqual(body.data.details, { functions: ['pg_catalog.pg_cancel_backend'] })
})

test('the right to read allows all read-only functions', async () => {
  for (const query of [
    'select i.id, j.word from item i join item j using (id) where i.id < 5 order by 1 desc limit 2',
    'with recursive n as (select 1 as i union all select i + 1 from n where i < 5) select sum(i), array_agg(i order by i) from n',
    'select word, rank() over (partition by id % 2 order by id), lag(id) over w from item window w as (order by id)',
    `select more->'a'->>0, jsonb_array_length(more->'a'), json_agg(item), jsonb_object_agg(word, id) from item group by more`,
    `select now(), current_date, clock_timestamp(), random(), gen_random_uuid(), date_trunc('day', now()), extract(year from now())`,
    'select * from words where at <= now()',
    'select doubled(id), total(i), i.total, (i).word from item i',
    `select count(*) filter (where word like 'word%' and id between 2 and 4), percentile_cont(0.5) within group (order by id) from item`,
    `select id::text::varchar(3), cast(word as name), '{1,2}'::int[], interval '1 day', null::jsonb from item where id = any (array[1, 2])`,
    `select string_agg(word, ',' order by id), upper(min(word)), coalesce(max(id), 0), nullif(1, 2) from item where word similar to '%1'`,
    `select * from generate_series(1, 3) n, lateral (select n * 2 as m) x, unnest(array['a', 'b']) with ordinality u(a, b)`,
    `select x.* from jsonb_to_recordset('[{"a": 1}]') as x(a int), regexp_matches('abc', 'b') m`,
    `select to_tsvector('english', word) @@ to_tsquery('word') from item`,
    'select table_name, pg_total_relation_size(c.oid) from information_schema.tables join pg_class c on c.relname = table_name',
    'select pid, state from pg_stat_activity union select pid, mode from pg_locks',
    'select n + 1, to_json(f) from fitted f order by n',
    'explain (analyze, costs off) select * from words',
    'show search_path',
  ]) {
    const answer = await sql(reader, query)
    assert.equal(answer.status, 200, `${query}: ${answer.text}`)
  }
  const bound = await sql(reader, 'select $1::int + id as n from item where word = $2', {
    params: [1, 'word 1'],
  })
  assert.deepEqual(bound.body.data, [{ n: 2 }])
})

test('with the right to read, EXPLAIN runs nothing that creates a table', async () => {
  const creating = ['create table made as select 1', 'create materialized view made as select 1', 'select 1 as n into made', 'refresh materialized view made'] // biome-ignore format: a list
  for (const query of creating.map((text) => `explain (analyze) ${text}`)) {
    const answer = await reader.post('/gateway/query', { query })
    assert.deepEqual([answer.status, answer.body.code], [403, 'read_only'], query)
  }
  const planned = await reader.post('/gateway/query', { query: 'explain delete from item where id = 1' })
  assert.equal(planned.status, 200, planned.text)
})

test('the right to write is not checked for functions, and overlong read-only SQL is rejected before parsing', async () => {
  assert.equal((await sql(full, `select set_config('a.b', 'c', true), stop(0)`)).status, 200)
  const long = await sql(reader, `select 1${' '.repeat(20_000)}`)
  assert.deepEqual([long.status, long.body.code], [400, 'too_complex'])
})
