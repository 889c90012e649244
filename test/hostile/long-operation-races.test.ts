import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { OWN_LOCKS, testDatabase, testServerUrl, withClient } from '#test/database.ts'
import { type Answer, actor, testService } from '#test/harness.ts'
import { whileArriving } from '#test/slow-body.ts'

/**
 * Pairs: a pipeline and a transaction × a change of what they rely on, in both orders. `gate` holds up the statements that write, by a lock of
 * the test, so that the change happens in the middle.
 */
const suffix = randomBytes(4).toString('hex')
const member = `member_${suffix}`
const visitor = `visitor_${suffix}`
const database = await testDatabase()
const sql = (text: string) => withClient(database.url, async (client) => (await client.query(text)).rows)
const onServer = (text: string) => withClient(testServerUrl(), (client) => client.query(text))
await onServer(
  `create role ${member} nologin; create role ${visitor} nologin; grant ${member}, ${visitor} to "${new URL(database.url).username}"`,
)
await sql(`
  create view source as select n, repeat('x', 200) as filler from generate_series(1, 12000) n;
  create table sink (n int, filler text);
  create function gate() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(1); return null; end $$;
  create trigger gate before insert on sink for each statement execute function gate();
  alter table sink enable row level security;
  create policy everything on sink using (true) with check (true);
  grant select on source, sink to ${member}; grant insert on sink to ${member}`)

const t = await testService({
  config: {
    gateway: { pipelines: { max_errors: 10 } },
    clients: {
      app: {
        url: database.url,
        enforce_api_keys: false,
        row_level_security: { enabled: true, anonymous_role: visitor, signed_in_role: member },
      },
    },
  },
})
const holder = new pg.Client({ connectionString: database.url })
await holder.connect()
after(async () => {
  await holder.end()
  await t.stop()
  await database.drop()
  await onServer(`drop role ${member}; drop role ${visitor}`)
})

const ACTS = {
  pipeline: { path: '/pipelines', body: { source: { table_name: 'source' }, sink: { table_name: 'sink' } } },
  transaction: {
    path: '/gateway/transaction',
    body: {
      operations: [1, 2, 3].map((n) => ({
        id: String(n),
        kind: 'insert',
        payload: { table_name: 'sink', insert_body: { n } },
      })),
    },
  },
} as const
type Act = keyof typeof ACTS

/** Headers of a caller, and a change after which that caller may not write. */
type Scene = {
  readonly headers: Readonly<Record<string, string>>
  change(): Promise<{ readonly status: number; readonly text: string }>
}

let scenes = 0
/** A registered client of its own, so that a freeze concerns this scene only. */
async function keyed(change: (client: string, keyId: string) => Promise<Answer>): Promise<Scene> {
  const client = `scene${++scenes}`
  const made = await t.admin.post('/admin/clients', {
    client_name: client,
    url: database.url,
    driver: 'postgresql',
  })
  assert.equal(made.status, 201, made.text)
  const key = await t.key(['pipelines.run', 'source.read', 'sink.*'], { client_name: client })
  return {
    headers: { apikey: key.apiKey, 'x-service-client': client },
    change: () => change(client, key.keyId),
  }
}

async function signedIn(
  change: (token: string) => Promise<Scene['change'] extends () => infer R ? Awaited<R> : never>,
): Promise<Scene> {
  const user = await t.signUp(`user${++scenes}`)
  return {
    headers: { 'x-service-client': 'app', 'x-service-auth-session-token': user.token },
    change: () => change(user.token),
  }
}

const CHANGES: Readonly<Record<string, { readonly code: string; readonly scene: () => Promise<Scene> }>> = {
  'key revoked': {
    code: 'invalid_api_key',
    scene: () => keyed((_, id) => t.admin.send('DELETE', `/admin/api-keys/${id}`)),
  },
  'right taken away': {
    code: 'insufficient_rights',
    scene: () =>
      keyed((_, id) =>
        t.admin.send('PATCH', `/admin/api-keys/${id}`, {
          body: { rights: ['pipelines.run', 'source.read', 'sink.read'] },
        }),
      ),
  },
  'client frozen': {
    code: 'client_frozen',
    scene: () =>
      keyed((client) =>
        t.admin.send('PUT', `/admin/clients/${client}/freeze`, { body: { is_frozen: true } }),
      ),
  },
  'client removed': {
    // Its keys go with it.
    code: 'inactive_api_key',
    scene: () => keyed((client) => t.admin.send('DELETE', `/admin/clients/${client}`)),
  },
  'session ended': {
    code: 'invalid_session',
    scene: () =>
      signedIn((token) => actor(t.url, { authorization: `Bearer ${token}` }).post('/api/auth/sign-out')),
  },
}

const stored = async () => Number((await sql('select count(*) from sink'))[0]?.count)

for (const act of Object.keys(ACTS) as Act[]) // keys of a literal
  for (const [name, { code, scene }] of Object.entries(CHANGES)) {
    test(`${act}: ${name} while the body arrives: nothing is written`, async () => {
      await sql('truncate sink')
      const { headers, change } = await scene()
      const answer = await whileArriving(t.url, { ...ACTS[act], headers }, async () => {
        const { status, text } = await change()
        assert.equal(status, 200, text)
      })
      assert.match(answer, new RegExp(`"code":"${code}"`))
      assert.equal(await stored(), 0)
    })

    test(`${act}: ${name} in the middle: nothing is written after that, beyond the batch under way`, async () => {
      await sql('truncate sink')
      const { headers, change } = await scene()
      await holder.query('select pg_advisory_lock(1)')
      const running = actor(t.url, headers).post(ACTS[act].path, ACTS[act].body)
      await waiting()
      const { status, text } = await change()
      await holder.query('select pg_advisory_unlock(1)')
      assert.equal(status, 200, text)
      const answer = await running
      assert.equal(answer.body.code, code, answer.text)
      const count = await stored()
      if (act === 'transaction') assert.equal(count, 0)
      else {
        assert.equal(answer.body.data.details.rows_inserted, count)
        assert.ok(count > 0 && count <= 5_000, `${count} rows`)
      }
      await sleep(50)
      assert.equal(await stored(), count)
    })
  }

/** Until a statement waits at the gate. */
async function waiting(): Promise<void> {
  const query = `select from ${OWN_LOCKS} where locktype = 'advisory' and not granted`
  for (let tries = 0; (await sql(query)).length === 0; tries++) {
    assert.ok(tries < 2_500, 'no statement waits')
    await sleep(20)
  }
}

for (const act of Object.keys(ACTS) as Act[]) // keys of a literal
  test(`${act}: a changed policy takes effect after the statement under way, and its change is answered after that`, async () => {
    await sql('truncate sink; alter policy everything on sink with check (true)')
    const { headers } = await signedIn(async () => ({ status: 200, text: '' }))
    await holder.query('select pg_advisory_lock(1)')
    const running = actor(t.url, headers).post(ACTS[act].path, ACTS[act].body)
    await waiting()
    let countAtChange: number | undefined
    const changing = sql('alter policy everything on sink with check (false)').then(async () => {
      countAtChange = await stored()
    })
    await sleep(100)
    assert.equal(countAtChange, undefined, 'the change waits for the transaction under way')
    await holder.query('select pg_advisory_unlock(1)')
    const answer = await running
    await changing
    const count = await stored()
    assert.equal(count, countAtChange, 'nothing is written after the change')
    if (act === 'transaction') assert.deepEqual([answer.status, count], [200, 3], answer.text)
    else {
      assert.deepEqual([answer.status, answer.body.rows_inserted], [200, count], answer.text)
      assert.ok(count > 0 && count <= 5_000, `${count} rows`)
      assert.equal(answer.body.errors[0].index, count)
    }
    const refused = await actor(t.url, headers).post(ACTS.transaction.path, ACTS.transaction.body)
    assert.equal(refused.status, 403, refused.text)
    await sql('alter policy everything on sink with check (true)')
  })
