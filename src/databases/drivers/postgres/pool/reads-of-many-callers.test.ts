import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import type { Driver } from '#databases/drivers/driver.ts'
import { createPostgresDriver } from '#databases/drivers/postgres/driver.ts'
import { readsByKey } from '#databases/plan/by-key.ts'
import { EVERY_RIGHT } from '#databases/plan/rights.ts'
import { readFetch } from '#databases/request/read-request.ts'
import { testDatabase, testServerUrl, withClient } from '#test/database.ts'
import { createCalls, limits } from '#test/drivers/calls.ts'

const suffix = randomBytes(4).toString('hex')
const [anonymousRole, signedInRole] = [`shared_anon_${suffix}`, `shared_user_${suffix}`]
const OWN = `(current_setting('request.claims')::jsonb->>'user_id') = owner`
const database = await testDatabase()
const onServer = (text: string) => withClient(testServerUrl(), (client) => client.query(text))
const sql = (text: string) => withClient(database.url, (client) => client.query(text))

before(async () => {
  const { username } = new URL(database.url)
  await onServer(`create role ${anonymousRole} nologin; create role ${signedInRole} nologin;
    grant ${anonymousRole}, ${signedInRole} to "${username}"`)
  await sql(`
    create table doc (id int primary key, owner text);
    insert into doc select n, case n % 3 when 0 then 'ada' when 1 then 'cem' else 'eve' end from generate_series(1, 300) n;
    alter table doc enable row level security;
    create policy own on doc to ${signedInRole} using (${OWN});
    create policy open on doc to ${anonymousRole} using (id = 1);
    create table locked (id int primary key, owner text);
    insert into locked values (1, 'ada');
    alter table locked enable row level security;
    create policy own on locked using (${OWN});
    grant select on doc, locked to ${anonymousRole}, ${signedInRole}`)
})
after(async () => {
  await sql(`drop owned by ${anonymousRole}, ${signedInRole}`)
  await database.drop()
  await onServer(`drop role ${anonymousRole}, ${signedInRole}`)
})

async function using(maxConnections: number, work: (driver: Driver) => Promise<void>): Promise<void> {
  const driver = createPostgresDriver({
    url: database.url,
    maxConnections,
    sqlConnections: 1,
    maxWaiting: 2_000,
    connectTimeout: 5_000,
    statementTimeout: 20_000,
    idleTimeout: 10_000,
    applicationName: 'shared by personas',
    maxRows: 100,
    answerBytes: 33_554_432,
    rowLevelSecurity: { anonymousRole, signedInRole },
  })
  try {
    await work(driver)
  } finally {
    await driver.close()
  }
}

/** Calls of a user, of nobody, or of a role that does not exist. */
function callsOf(driver: Driver, who: string | undefined, role = signedInRole) {
  const persona =
    who === undefined
      ? { role: anonymousRole, claims: '{}' }
      : { role, claims: JSON.stringify({ user_id: who }) }
  const acting = driver.policies?.as(persona)
  assert.ok(acting)
  return createCalls(() => acting)
}

const byKey = (table: string, id: unknown) => ({ table, conditions: { column: 'id', value: id } })
const ids = Array.from({ length: 60 }, (_, index) => index + 1)
const ownerOf = (id: number) => ['ada', 'cem', 'eve'][id % 3]

test('reads by key of many callers on one connection show each what its policies allow, also after failures of others', async () => {
  await using(1, async (driver) => {
    const owner = createCalls(() => driver)
    const seenBy = async (who: string | undefined, id: number) =>
      (await callsOf(driver, who).fetch(byKey('doc', id))).rows.length
    for (let round = 0; round < 3; round++)
      await Promise.all(
        ids.flatMap((id) => [
          ...['ada', 'cem', 'eve'].map(async (who) =>
            assert.equal(await seenBy(who, id), who === ownerOf(id) ? 1 : 0, `${who} ${id}`),
          ),
          seenBy(undefined, id).then((rows) => assert.equal(rows, id === 1 ? 1 : 0, `anonymous ${id}`)),
          owner.fetch(byKey('doc', id)).then(({ rows }) => assert.equal(rows.length, 1, `owner ${id}`)),
          assert.rejects(callsOf(driver, 'ada').fetch(byKey('doc', `${id} is no number`)), { status: 422 }),
          // The role cannot be taken, so the statement is not run.
          assert.rejects(callsOf(driver, 'ada', 'nobody_at_all').fetch(byKey('doc', id)), {
            code: 'roles_unavailable',
          }),
        ]),
      )
  })
})

test('reads by key that wait behind a locked table are run on other connections, each as its own caller', async () => {
  await using(8, async (driver) => {
    const read = async (who: string, table: string, id: number) =>
      (await callsOf(driver, who).fetch(byKey(table, id))).rows.length
    await Promise.all(['ada', 'cem'].map((who) => read(who, 'locked', 1)))
    await withClient(database.url, async (client) => {
      await client.query('begin; lock table locked in access exclusive mode')
      const waiting = [read('ada', 'locked', 1), read('cem', 'locked', 1)]
      const others = ids.flatMap((id) => ['ada', 'cem'].map((who) => ({ id, who })))
      const seen = await Promise.all(others.map(({ id, who }) => read(who, 'doc', id)))
      assert.deepEqual(
        seen,
        others.map(({ id, who }) => (who === ownerOf(id) ? 1 : 0)),
      )
      await client.query('commit')
      assert.deepEqual(await Promise.all(waiting), [1, 0])
    })
  })
})

test('reads share connections where policies look at the row alone and the comparison of the key is leakproof', async () => {
  const secured = (name: string, key: string, using?: string) =>
    `create table ${name} (id ${key} primary key, owner text); alter table ${name} enable row level security;
     ${using === undefined ? '' : `create policy own on ${name} using (${using});`}`
  await sql(`
    create table member (owner text);
    create function is_mine(owner text) returns boolean language sql as 'select true';
    ${secured('without_policies', 'int')}
    ${secured('by_row', 'uuid', OWN)}
    ${secured('by_number', 'numeric', OWN)}
    ${secured('by_table', 'int', 'exists (select from member m where m.owner = by_table.owner)')}
    ${secured('by_function', 'int', 'is_mine(owner)')}
    ${secured('by_setting', 'int', `set_config('app.mark', owner, false) is not null`)}
    ${secured('parent', 'int', OWN)}
    create table child () inherits (parent)`)
  const keys: Readonly<Record<string, unknown>> = {
    without_policies: 1,
    by_row: crypto.randomUUID(),
    by_number: 1,
    by_table: 1,
    by_function: 1,
    by_setting: 1,
    parent: 1,
  }
  await using(1, async (driver) => {
    const sharing: string[] = []
    for (const [table, key] of Object.entries(keys)) {
      const plan = await driver.plan(readFetch(byKey(table, key), { limits }), EVERY_RIGHT)
      if (readsByKey(plan)) sharing.push(table)
    }
    assert.deepEqual(sharing, ['without_policies', 'by_row'])
  })
})
