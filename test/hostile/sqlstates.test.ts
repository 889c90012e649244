import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { failureOf } from '#databases/drivers/postgres/protocol/errors.ts'
import { findBinaries } from '#kernel/db/embedded/binaries.ts'
import { Failure } from '#kernel/errors.ts'
import { testDatabase, withClient } from '#test/database.ts'
import { type Actor, type Answer, testService } from '#test/harness.ts'

/** Expected failure for each class (two characters) of PostgreSQL's error codes, for codes without their own entry. */
const CLASSES: Readonly<Record<string, readonly [status: number, code: string]>> = {
  '00': [502, 'database_error'],
  '01': [502, 'database_error'],
  '02': [502, 'database_error'],
  '03': [502, 'database_error'],
  '08': [502, 'connection_lost'],
  '09': [400, 'rejected_by_database'],
  '0A': [400, 'not_supported'],
  '0B': [502, 'database_error'],
  '0F': [502, 'database_error'],
  '0L': [502, 'database_error'],
  '0P': [502, 'database_error'],
  '0Z': [502, 'database_error'],
  '10': [422, 'invalid_value'],
  '20': [400, 'rejected_by_database'],
  '21': [400, 'invalid_write'],
  '22': [422, 'invalid_value'],
  '23': [400, 'rejected_by_database'],
  '24': [502, 'database_error'],
  '25': [502, 'database_error'],
  '26': [502, 'connection_lost'],
  '27': [400, 'rejected_by_database'],
  '28': [502, 'client_refused'],
  '2B': [409, 'object_in_use'],
  '2D': [502, 'database_error'],
  '2F': [502, 'database_error'],
  '34': [502, 'database_error'],
  '38': [400, 'rejected_by_database'],
  '39': [502, 'database_error'],
  '3B': [502, 'database_error'],
  '3D': [502, 'client_refused'],
  '3F': [404, 'schema_not_found'],
  '40': [409, 'write_conflict'],
  '42': [400, 'rejected_by_database'],
  '44': [422, 'check_violation'],
  '53': [503, 'client_unavailable'],
  '54': [400, 'too_complex'],
  '55': [400, 'not_supported'],
  '57': [502, 'connection_lost'],
  '58': [502, 'database_error'],
  '72': [409, 'write_conflict'],
  F0: [502, 'database_error'],
  HV: [502, 'database_error'],
  P0: [400, 'rejected_by_database'],
  XX: [502, 'database_error'],
}

/** Expected failures for codes that programs commonly handle. */
const CODES: Readonly<Record<string, readonly [status: number, code: string]>> = {
  '22001': [422, 'invalid_value'],
  '22012': [422, 'invalid_value'],
  '22P02': [422, 'invalid_value'],
  '23001': [409, 'foreign_key_violation'],
  '23502': [400, 'not_null_violation'],
  '23503': [409, 'foreign_key_violation'],
  '23505': [409, 'unique_violation'],
  '23514': [422, 'check_violation'],
  '23P01': [409, 'exclusion_violation'],
  '25006': [403, 'read_only'],
  '25P03': [502, 'connection_lost'],
  '25P04': [504, 'statement_timeout'],
  '40001': [409, 'write_conflict'],
  '40P01': [409, 'write_conflict'],
  '42501': [403, 'permission_denied'],
  '42703': [400, 'unknown_column'],
  '42P01': [404, 'table_not_found'],
  '53100': [503, 'client_unavailable'],
  '53200': [503, 'client_unavailable'],
  '53300': [503, 'client_busy'],
  '53400': [503, 'client_unavailable'],
  '55000': [400, 'not_supported'],
  '55006': [409, 'object_in_use'],
  '55P03': [409, 'write_conflict'],
  '57014': [504, 'statement_timeout'],
  '57P01': [502, 'connection_lost'],
  '57P03': [503, 'client_unavailable'],
  '58030': [502, 'database_error'],
  P0001: [400, 'rejected_by_database'],
  XX001: [502, 'database_error'],
}

/** A server message with internal details, which failures of the backend must not reveal. */
const INSIDE =
  'could not open "/var/lib/postgresql/x" for select secret from t: postgres://app:hush@db.internal/shop'

const failureFor = (code: string): Failure => {
  const failure = failureOf(Object.assign(new Error(INSIDE), { severity: 'ERROR', code }))
  assert.ok(failure instanceof Failure, code)
  return failure
}
const verdict = (code: string) => {
  const { status, code: name } = failureFor(code)
  return [status, name]
}

async function appendix(): Promise<readonly string[]> {
  const { postgres } = await findBinaries()
  const file = path.join(path.dirname(postgres), '../share/postgresql/errcodes.txt')
  return [...(await readFile(file, 'utf8')).matchAll(/^([0-9A-Z]{5})\s/gm)].map(([, code = '']) => code)
}

const client = await testDatabase()
const crowded = await testDatabase()
const standby = await testDatabase()
const hasty = await testDatabase()
const t = await testService({
  config: {
    clients: {
      shop: { url: client.url },
      impatient: { url: client.url, statement_timeout: 300 },
      crowded: { url: crowded.url },
      standby: { url: standby.url },
      hasty: { url: hasty.url },
    },
  },
})

const key = await t.key(['*'], { client_name: null })
const by = (name: string): Actor => {
  const send: Actor['send'] = (method, path, ask = {}) =>
    key.send(method, path, { ...ask, headers: { 'x-service-client': name, ...ask.headers } })
  return {
    headers: key.headers,
    send,
    get: (path, ask) => send('GET', path, ask),
    post: (path, body = {}, ask = {}) => send('POST', path, { body, ...ask }),
  }
}
const shop = by('shop')

const schema = `
  create table team (id int primary key, name text);
  create table item (
    id int primary key, name varchar(5) not null unique, price numeric(4, 2), stock int check (stock >= 0), at date,
    team_id int references team, held_by int references team on delete restrict,
    share int check (100 / nullif(share, 7) > 0 and 100 / (share - 3) <> 0));
  create table room (id int primary key, during int4range, exclude using gist (during with &&));
  create table gate (id int primary key, opened int default 0);
  create table account (id int primary key, amount int);
  create table hush (id int primary key);
  create table wobbly (id int primary key, extra text);
  create view slow as select 1 as id, pg_sleep(60)::text as slept;
  create function refuse() returns trigger language plpgsql as
    $$begin raise exception 'not on sundays' using errcode = new.state; end$$;
  create table ruled (id int primary key, state text);
  create trigger refuse before insert on ruled for each row execute function refuse();
  insert into team values (1, 'a'), (2, 'b');
  insert into item (id, name, team_id, held_by) values (1, 'one', 1, 2);
  insert into room values (1, '[1,5)');
  insert into gate values (1), (2);
  insert into account values (1, 10), (2, 10);
  revoke all on hush from current_user`

await withClient(client.url, (session) => session.query(schema))
for (const { url } of [crowded, standby, hasty])
  await withClient(url, (session) =>
    session.query('create table gate (id int primary key, opened int); insert into gate values (1)'),
  )

/** Asserts status and code, and that the response contains no statement, host or password. */
function refused(answer: Answer, status: number, code: string): void {
  assert.deepEqual([answer.status, answer.body?.code], [status, code], answer.text)
  assert.doesNotMatch(answer.text, /(into|update|from) \\"|\$\d|pg_sleep|postgres(ql)?:|127\.0\.0\.1/i)
  const { password, username, pathname } = new URL(client.url)
  for (const secret of [password, username, pathname.slice(1)])
    assert.ok(!answer.text.includes(secret), answer.text)
  if (status === 503) assert.match(answer.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
}

test('every class of SQLSTATE maps to a failure, and none to status 500', async () => {
  const codes = await appendix()
  assert.ok(codes.length > 250, `${codes.length} codes`)
  assert.deepEqual(
    codes.map((code) => code.slice(0, 2)).filter((found) => !Object.hasOwn(CLASSES, found)),
    [],
  )
  for (const [found, expected] of Object.entries(CLASSES))
    assert.deepEqual(verdict(`${found}ZZZ`), expected, found)
  for (const [code, expected] of Object.entries(CODES)) assert.deepEqual(verdict(code), expected, code)
  assert.deepEqual(
    verdict('QQ123'),
    [400, 'rejected_by_database'],
    'a code that a database function invented',
  )
  for (const code of codes) assert.notEqual(failureFor(code).status, 500, code)
})

test('a failure of the backend does not reveal the server message', async () => {
  for (const code of await appendix()) {
    const { status, message, hint = '', details } = failureFor(code)
    if (status >= 500)
      assert.doesNotMatch(JSON.stringify([message, hint, details]), /hush|select|internal|postgres/, code)
  }
})

const insert = (table: string, row: object) =>
  shop.send('PUT', '/gateway/insert', { body: { table_name: table, insert_body: row } })
const update = (who: Actor, table: string, id: number, set: object) =>
  who.post('/gateway/update', { table_name: table, set, conditions: [{ column: 'id', value: id }] })
const remove = (table: string, id: number) =>
  shop.post('/gateway/delete', { table_name: table, conditions: [{ column: 'id', value: id }] })
const fetch = (who: Actor, table: string) => who.post('/gateway/fetch', { table_name: table })
const sql = (query: string) => shop.post('/gateway/query', { query })

test("constraint violations are client errors with the constraint's code", async () => {
  const row = { id: 2, name: 'two' }
  refused(await insert('item', { ...row, name: 'one' }), 409, 'unique_violation')
  refused(await insert('item', { ...row, team_id: 9 }), 409, 'foreign_key_violation')
  refused(await remove('team', 1), 409, 'foreign_key_violation')
  refused(await remove('team', 2), 409, 'foreign_key_violation')
  refused(await insert('item', { id: 2 }), 400, 'not_null_violation')
  refused(await insert('item', { ...row, stock: -1 }), 422, 'check_violation')
  refused(await insert('room', { id: 2, during: '[4,9)' }), 409, 'exclusion_violation')
  refused(await insert('ruled', { id: 1, state: 'P0001' }), 400, 'rejected_by_database')
  refused(await insert('ruled', { id: 1, state: 'P0004' }), 400, 'rejected_by_database')
  const { rows } = await withClient(client.url, (session) =>
    session.query(
      'select (select count(*) from item) + (select count(*) from ruled) as n, (select count(*) from team) as teams',
    ),
  )
  assert.deepEqual(rows, [{ n: '1', teams: '2' }])
})

test('a trigger refuses by any SQLSTATE, also by one of connections, with its own words', async () => {
  for (const state of [
    'ZZ001',
    'PT409',
    '08006',
    '28000',
    '53300',
    '53400',
    '57P01',
    '57P03',
    '58030',
    'XX000',
    'HV000',
  ]) {
    const answer = await insert('ruled', { id: 1, state })
    refused(answer, 400, 'rejected_by_database')
    assert.equal(answer.body.error, 'not on sundays', state)
    assert.equal(answer.body.data.details.sqlstate, state)
  }
  assert.deepEqual((await fetch(shop, 'ruled')).body.data, [])
  refused(await insert('ruled', { id: 1, state: '40001' }), 409, 'write_conflict')
})

test('invalid values get 422 with the name of the column', async () => {
  const invalidValues = {
    stock: ['x', '99999999999', '1.5'],
    price: ['1000', 'NaN!'],
    at: ['2026-13-45', 'tomorrowish'],
    name: ['longer than five'],
  }
  for (const [column, values] of Object.entries(invalidValues))
    for (const value of values) {
      const answer = await insert('item', { id: 2, name: 'two', [column]: value })
      refused(answer, 422, 'invalid_value')
      assert.equal(answer.body.data.details.column, column, answer.text)
    }
  refused(await insert('item', { id: 2, name: 'two', share: 3 }), 422, 'invalid_value')
})

test('missing privileges and read-only databases get 403', async () => {
  refused(await fetch(shop, 'hush'), 403, 'permission_denied')
  refused(await insert('hush', { id: 1 }), 403, 'permission_denied')
  await withClient(standby.url, (session) =>
    session.query(
      `do $$begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end$$`,
    ),
  )
  const reader = by('standby')
  assert.equal((await fetch(reader, 'gate')).status, 200)
  refused(await update(reader, 'gate', 1, { opened: 1 }), 403, 'read_only')
})

/** Locks rows of `gate` while the work starts, until `waiting` sessions wait for them. */
async function whileHeld<T>(url: string, waiting: number, begin: () => Promise<T>): Promise<T> {
  const holder = new pg.Client(url)
  await holder.connect()
  try {
    await holder.query('begin')
    await holder.query('select from gate for update')
    const work = begin()
    await until(url, waiting)
    await holder.query('rollback')
    return await work
  } finally {
    await holder.end()
  }
}

async function until(url: string, waiting: number, like = '%'): Promise<readonly number[]> {
  return withClient(url, async (session) => {
    for (const began = performance.now(); performance.now() - began < 60_000; await sleep(10)) {
      const { rows } = await session.query(
        `select pid from pg_stat_activity where datname = current_database() and state = 'active'
           and pid <> pg_backend_pid() and wait_event_type in ('Lock', 'Timeout') and query like $1`,
        [like],
      )
      if (rows.length >= waiting) return rows.map(({ pid }) => pid)
    }
    throw new Error(`fewer than ${waiting} sessions wait`)
  })
}

const write = (table: string, id: number, set: object) => ({
  kind: 'update',
  payload: { table_name: table, set, conditions: [{ column: 'id', value: id }] },
})
const transaction = (operations: readonly object[], options = {}) =>
  shop.post('/gateway/transaction', {
    operations: operations.map((operation, index) => ({ id: `${index}`, ...operation })),
    options,
  })

test('of two deadlocked transactions one is rolled back with 409, the other succeeds', async () => {
  const crossing = (gate: number, first: number, second: number) =>
    transaction([
      write('account', first, { amount: first * 100 + second }),
      write('gate', gate, { opened: 1 }),
      write('account', second, { amount: first * 100 + second }),
    ])
  const answers = await whileHeld(client.url, 2, () => Promise.all([crossing(1, 1, 2), crossing(2, 2, 1)]))
  const [lost, ...others] = answers.filter(({ status }) => status !== 200)
  assert.ok(lost && others.length === 0, JSON.stringify(answers.map(({ text }) => text)))
  refused(lost, 409, 'write_conflict')
  const amount = lost === answers[0] ? 201 : 102
  const { body } = await fetch(shop, 'account')
  assert.deepEqual(
    body.data.map((row: { amount: number }) => row.amount),
    [amount, amount],
  )
})

test('of two conflicting serializable transactions one is rolled back with 409', async () => {
  const skewed = (gate: number, id: number) =>
    transaction(
      [
        { kind: 'fetch', payload: { table_name: 'account' } },
        write('gate', gate, { opened: 1 }),
        { kind: 'insert', payload: { table_name: 'account', insert_body: { id, amount: 1 } } },
      ],
      { isolation_level: 'serializable' },
    )
  const answers = await whileHeld(client.url, 2, () => Promise.all([skewed(1, 11), skewed(2, 12)]))
  const [lost, ...others] = answers.filter(({ status }) => status !== 200)
  assert.ok(lost && others.length === 0, JSON.stringify(answers.map(({ text }) => text)))
  refused(lost, 409, 'write_conflict')
  const { body } = await shop.post('/gateway/fetch', {
    table_name: 'account',
    conditions: [{ operator: 'gte', column: 'id', value: 11 }],
  })
  assert.deepEqual(
    body.data.map((row: { id: number }) => row.id),
    [lost === answers[0] ? 12 : 11],
  )
})

test('a lock timeout gets 409', async () => {
  await withClient(hasty.url, (session) =>
    session.query(
      `do $$begin execute format('alter database %I set lock_timeout = 100', current_database()); end$$`,
    ),
  )
  const holder = new pg.Client(hasty.url)
  await holder.connect()
  await holder.query('begin; select from gate for update')
  refused(await update(by('hasty'), 'gate', 1, { opened: 1 }), 409, 'write_conflict')
  await holder.query('rollback')
  await holder.end()
  assert.equal((await update(by('hasty'), 'gate', 1, { opened: 2 })).status, 200)
})

test('a statement that times out or is cancelled by an operator gets 504 and has no effect', async () => {
  refused(await fetch(by('impatient'), 'slow'), 504, 'statement_timeout')
  const holder = new pg.Client(client.url)
  await holder.connect()
  await holder.query('begin; select from gate for update')
  const cancelled = update(shop, 'gate', 2, { opened: 7 })
  for (const pid of await until(client.url, 1, '%update%gate%'))
    await holder.query('select pg_cancel_backend($1)', [pid])
  await holder.query('rollback')
  await holder.end()
  refused(await cancelled, 504, 'statement_timeout')
  const { body } = await fetch(shop, 'gate')
  assert.notEqual(body.data.find((row: { id: number }) => row.id === 2).opened, 7)
})

test('a connection that is lost during a write gets 502, with a hint that the outcome is unknown', async () => {
  const holder = new pg.Client(client.url)
  await holder.connect()
  await holder.query('begin; select from gate for update')
  const change = update(shop, 'gate', 2, { opened: 8 })
  for (const pid of await until(client.url, 1, '%update%gate%'))
    await holder.query('select pg_terminate_backend($1)', [pid])
  const answer = await change
  await holder.query('rollback')
  await holder.end()
  refused(answer, 502, 'connection_lost')
  assert.match(answer.body.error, /whether a write was done is not known/)
  assert.equal((await update(shop, 'gate', 2, { opened: 9 })).status, 200)
})

test('a server without free connections gets 503 with Retry-After', async () => {
  await withClient(crowded.url, async (session) => {
    await session.query(
      `do $$begin execute format('alter database %I connection limit 1', current_database()); end$$`,
    )
    let next = await fetch(by('crowded'), 'gate')
    refused(next, 503, 'client_busy')
    // On a slow machine the circuit may be half open by then; each time it is open for longer.
    for (let tries = 0; next.body.code === 'client_busy' && tries < 5; tries++)
      next = await fetch(by('crowded'), 'gate')
    refused(next, 503, 'client_unavailable')
  })
  for (let tries = 0; (await fetch(by('crowded'), 'gate')).status !== 200; tries++) {
    assert.ok(tries < 100)
    await sleep(100)
  }
})

test('dropped columns and tables are noticed despite the cached catalogue, even in a transaction', async () => {
  const named = { table_name: 'wobbly', columns: ['id', 'extra'] }
  assert.equal((await shop.post('/gateway/fetch', named)).status, 200)
  await withClient(client.url, (session) => session.query('alter table wobbly drop column extra'))
  refused(await shop.post('/gateway/fetch', named), 400, 'unknown_column')
  assert.equal((await fetch(shop, 'wobbly')).status, 200)
  await withClient(client.url, (session) => session.query('alter table wobbly add again int'))
  await shop.post('/gateway/fetch', { table_name: 'wobbly', columns: ['again'] })
  await withClient(client.url, (session) => session.query('drop table wobbly'))
  refused(await transaction([{ kind: 'fetch', payload: { table_name: 'wobbly' } }]), 404, 'table_not_found')
  refused(await fetch(shop, 'wobbly'), 404, 'table_not_found')
})

test("SQLSTATEs of failed connections are client errors if they come from a caller's own SQL", async () => {
  for (const query of ['execute nothing', 'drop database nowhere']) {
    const answer = await sql(query)
    assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_sql'], `${query}: ${answer.text}`)
  }
})

after(() => Promise.all([client, crowded, standby, hasty].map((database) => database.drop())))
