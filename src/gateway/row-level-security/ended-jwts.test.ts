import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { OWN_LOCKS, withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { actor } from '#test/harness.ts'
import { AUDIENCE, startJwtIssuer } from '#test/jwt-issuer.ts'
import { readPaced } from '#test/paced-reader.ts'
import { whileArriving } from '#test/slow-body.ts'
import { createTenants, fetchDocs } from '#test/tenants.ts'

const now = () => t.service.kernel.now().getTime() / 1_000
const acme = await startJwtIssuer({ now })
const { t, database, sql, roles } = await createTenants(({ url, policies }) => ({
  outbound: { allow_http: true, allow_networks: ['127.0.0.0/8'] },
  clients: {
    jwt: {
      url,
      max_connections: 4,
      row_level_security: { ...policies, issuers: [{ issuer: acme.issuer, audience: [AUDIENCE] }] },
    },
  },
}))
// Forty megabytes, which is more than all buffers between the database and a reader take.
await sql(`create view big as select n as id, repeat('x', 500000) as text from generate_series(1, 80) n;
  create table slot (id int, user_id text default (claims()->>'user_id'));
  alter table slot enable row level security;
  create policy own on slot using (user_id = claims()->>'user_id');
  create function waits() returns trigger language plpgsql as $$ begin
    if new.id = 1 then perform pg_advisory_xact_lock_shared(7); end if; return new; end $$;
  create trigger waits before insert on slot for each row execute function waits();
  create view numbered as select id from generate_series(1, 5000) id;
  grant select on big, numbered to ${roles.member};
  grant select, insert on slot to ${roles.member}`)
const { apiKey } = await t.key(['*'], { client_name: null })
const headersOf = (token: string) => ({
  apikey: apiKey,
  'x-service-client': 'jwt',
  authorization: `Bearer ${token}`,
})

test('a JWT is accepted until its end, also when it was verified before', async () => {
  const who = actor(t.url, headersOf(await acme.sign({ sub: 'short' })))
  assert.equal((await fetchDocs(who)).status, 200)
  t.advance(290_000)
  assert.equal((await fetchDocs(who)).status, 200)
  t.advance(10_000)
  const answer = await fetchDocs(who)
  assert.deepEqual([answer.status, answer.body.code], [401, 'jwt_expired'])
})

test('a JWT that ends while the body arrives gets 401', async () => {
  const headers = headersOf(await acme.sign({ sub: 'slow' }))
  const asked = { path: '/gateway/fetch', headers, body: { table_name: 'doc' } }
  const answer = await whileArriving(t.url, asked, async () => t.advance(301_000))
  assert.match(answer, /401 Unauthorized.*jwt_expired/s)
})

test('a stream ends unfinished when the JWT of its caller ends', async () => {
  // The clock is not turned, because it also measures how fast a reader is.
  const token = await acme.sign({ sub: 'streaming', exp: Math.ceil(now()) + 3 })
  const stream = await readPaced(`${t.url}/gateway/fetch`, {
    headers: headersOf(token),
    body: { table_name: 'big' },
  })
  assert.ok(stream.isOpen())
  const ended = () =>
    t.log
      .map((line) => JSON.parse(line))
      .find(({ event, request_id }) => event === 'stream_ended' && request_id === stream.requestId)
  await eventually(async () => ended() !== undefined)
  assert.equal(ended().reason, 'jwt_expired')
  stream.hurry()
  assert.equal(await stream.end, 'cut')
})

test('a pipeline whose JWT ends writes no further row', async () => {
  const who = actor(t.url, headersOf(await acme.sign({ sub: 'running' })))
  const running = await withClient(database.url, async (client) => {
    await client.query('select pg_advisory_lock(7)')
    const body = { source: { table_name: 'numbered' }, sink: { table_name: 'slot' } }
    const answer = { ended: who.post('/pipelines', body) }
    const waiting = `select from ${OWN_LOCKS} where locktype = 'advisory' and not granted`
    while ((await client.query(waiting)).rowCount === 0) await sleep(10)
    t.advance(301_000)
    return answer
  })
  const { status, body } = await running.ended
  assert.deepEqual([status, body.code], [401, 'jwt_expired'])
  const [{ rows }] = await sql('select count(*)::int as rows from slot')
  assert.ok(rows < 5_000, String(rows))
  assert.equal(rows, body.data.details.rows_inserted)
})
