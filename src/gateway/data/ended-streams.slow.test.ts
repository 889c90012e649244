import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, describe } from 'node:test'
import { hasPooler, testDatabase, testServerUrl, withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { controlDatabase, testClock, testService } from '#test/harness.ts'
import { ageProof, OPERATE, operatorOf } from '#test/operators.ts'
import { createPerson } from '#test/organizations.ts'
import type { PacedReader } from '#test/paced-reader.ts'
import { patientTest, readOnceConnected, reasonIn } from '#test/stream-ends.ts'

const suffix = randomBytes(4).toString('hex')
const [anonymous, member] = [`anon_${suffix}`, `authenticated_${suffix}`]
const database = await testDatabase()
const sql = (text: string) => withClient(database.url, async (client) => (await client.query(text)).rows)
const onServer = (text: string) => withClient(testServerUrl(), (client) => client.query(text))
await onServer(`create role ${anonymous} nologin; create role ${member} nologin;
  grant ${anonymous}, ${member} to "${new URL(database.url).username}"`)
// Forty megabytes, which is more than all buffers between the database and a reader take.
await sql(`
  create table note (id int primary key, text text);
  create view big as select n as id, 'long' as kind, repeat('x', 500000) as text from generate_series(1, 80) n;
  grant select on big to ${anonymous}, ${member}`)

const url = database.url
// A busy machine may need longer than usual to connect.
const wide = { url, max_connections: 40, connect_timeout: 60_000 }
const row_level_security = { enabled: true, anonymous_role: anonymous, signed_in_role: member }
const config = {
  clients: { wide, open: { ...wide, enforce_api_keys: false }, app: { ...wide, row_level_security } },
}
const controlUrl = await controlDatabase()
const clock = testClock()
const here = await testService({ controlUrl, config, clock })
/** As another process of the same installation. */
const elsewhere = await testService({ controlUrl, config, clock })
after(async () => {
  await Promise.all([here.stop(), elsewhere.stop()])
  await database.drop()
  await onServer(`drop role ${anonymous}; drop role ${member}`)
})
const admin = await createPerson(here, { role: 'admin' })
const { admin: operator } = here

type Call = {
  readonly path: string
  readonly method?: string
  readonly headers: Record<string, string>
  readonly body?: object
}
/** A stream in each of the two processes. When one does not begin, the other must not keep its connection from other tests. */
async function inBoth(call: Call): Promise<PacedReader[]> {
  const begun = await Promise.allSettled(
    [here, elsewhere].map(({ url }) => readOnceConnected(`${url}${call.path}`, call)),
  )
  const streams = begun.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const failed = begun.find((one) => one.status === 'rejected')
  if (failed === undefined) return streams
  for (const stream of streams) stream.hurry()
  throw failed.reason
}
const FETCH = { table_name: 'big' }
const fetched = (client: string, headers: Record<string, string>): Call => ({
  path: '/gateway/fetch',
  headers: { ...headers, 'x-service-client': client },
  body: FETCH,
})
const keyFor = (client_name: string, rights: readonly string[] = ['*']) => here.key(rights, { client_name })
const ok = async (asked: Promise<{ readonly status: number; readonly text: string }>) => {
  const { status, text } = await asked
  assert.ok(status < 300, text)
}

/** A stream's end has the first reason that its process heard of, so a change of two things has two. */
type Reason = string | readonly string[]

async function expectEnd(streams: readonly PacedReader[], reason: Reason): Promise<void> {
  for (const [index, service] of [here, elsewhere].entries()) {
    const stream = streams[index] ?? assert.fail()
    await eventually(() => reasonIn(service, stream) !== undefined)
    assert.ok([reason].flat().includes(reasonIn(service, stream) ?? 'not logged'))
    stream.hurry()
    assert.equal(await stream.end, 'cut')
    // The rest of what was sent is not delivered either.
    assert.ok(stream.taken() < 20_000_000, `${stream.taken()} bytes`)
  }
}

const expectOpen = (streams: readonly PacedReader[]): void =>
  streams.forEach((stream, index) => {
    assert.deepEqual([reasonIn([here, elsewhere][index] ?? here, stream), stream.isOpen()], [undefined, true])
  })

/** Statements of the client on its database. */
const running = async (client: string): Promise<number> => {
  const [{ count }] = await sql(
    `select count(*)::int as count from pg_stat_activity
     where datname = current_database() and application_name = 'gatehouse ${client}' and state <> 'idle'`,
  )
  return count
}

/** A client registered over HTTP, of the same database. */
async function registered(): Promise<string> {
  const client_name = `branch-${randomBytes(4).toString('hex')}`
  await ok(operator.post('/admin/clients', { client_name, url }))
  return client_name
}

/** Begins a stream in both processes, and returns how to end it and why it ends. */
type Case = () => Promise<{
  readonly call: Call
  readonly end: () => Promise<void>
  readonly reason: Reason
  readonly client: string
}>

const onKey =
  (change: (id: string) => Promise<void>, reason: string, path = fetched): Case =>
  async () => {
    const key = await keyFor('wide')
    return {
      client: 'wide',
      call: path('wide', { apikey: key.apiKey }),
      end: () => change(key.keyId),
      reason,
    }
  }
const patched = (body: object) => (id: string) =>
  ok(operator.send('PATCH', `/admin/api-keys/${id}`, { body }))
const bySession =
  (end: (user: { readonly id: string; readonly headers: object }) => Promise<void>, reason: string): Case =>
  async () => {
    const [key, ada] = [await keyFor('app'), await here.signUp('Ada')]
    const headers = { apikey: key.apiKey, authorization: `Bearer ${ada.token}` }
    return { client: 'app', call: fetched('app', headers), end: () => end(ada), reason }
  }
const asAdmin = (path: string, body: object) => ok(admin.post(`/api/auth/admin/${path}`, body))
const onClient =
  (change: (name: string) => Promise<void>, reason: Reason): Case =>
  async () => {
    const client = await registered()
    const key = await keyFor(client)
    return { client, call: fetched(client, { apikey: key.apiKey }), end: () => change(client), reason }
  }
const publicRoute =
  (change: object, reason: string): Case =>
  async () => {
    const route_key = `big-${randomBytes(4).toString('hex')}`
    const record = {
      route_key,
      client_name: 'open',
      allowed_ops: ['fetch'],
      table_name: 'big',
      requires_key: false,
    }
    await ok(operator.post('/admin/public-routes', record))
    const end = () => ok(operator.send('PATCH', `/admin/public-routes/${route_key}`, { body: change }))
    return {
      client: 'open',
      call: { path: `/public/${route_key}/fetch`, headers: {}, body: {} },
      end,
      reason,
    }
  }

const CASES: Readonly<Record<string, Case>> = {
  'its key is deleted': onKey(
    (id) => ok(operator.send('DELETE', `/admin/api-keys/${id}`)),
    'invalid_api_key',
  ),
  'its key becomes inactive': onKey(patched({ is_active: false }), 'inactive_api_key'),
  'its key gets a new secret': onKey(
    (id) => ok(operator.post(`/admin/api-keys/${id}/rotate`)),
    'invalid_api_key',
  ),
  'its key loses the right to the table': onKey(patched({ rights: ['note.*'] }), 'insufficient_rights'),
  'its key loses the right, on GET /data': onKey(
    patched({ rights: ['note.*'] }),
    'insufficient_rights',
    (client, headers) => ({
      path: '/data?view=big&eq_column=kind&eq_value=long',
      method: 'GET',
      headers: { ...headers, 'x-service-client': client },
    }),
  ),
  'its key loses the right, and its rows are CSV': onKey(
    patched({ rights: ['note.*'] }),
    'insufficient_rights',
    (client, headers) => ({
      ...fetched(client, headers),
      path: '/gateway/fetch?format=csv',
      body: { ...FETCH, limit: 80 },
    }),
  ),
  'its session is signed out': bySession(
    ({ headers }) => ok(here.anon.post('/api/auth/sign-out', {}, { headers: { ...headers } })),
    'invalid_session',
  ),
  'its user is banned': bySession(({ id }) => asAdmin('ban-user', { userId: id }), 'invalid_session'),
  'its user gets another role': bySession(
    ({ id }) => asAdmin('set-role', { userId: id, role: 'admin' }),
    'caller_changed',
  ),
  'its client is frozen': onClient(
    (name) => ok(operator.send('PUT', `/admin/clients/${name}/freeze`, { body: { is_frozen: true } })),
    'client_frozen',
  ),
  'its client is removed': onClient(
    (name) => ok(operator.send('DELETE', `/admin/clients/${name}`)),
    ['unknown_client', 'inactive_api_key'],
  ),
  'its client becomes inactive': onClient(
    (name) => ok(operator.send('PATCH', `/admin/clients/${name}`, { body: { is_active: false } })),
    'unknown_client',
  ),
  'its public route becomes inactive': publicRoute({ is_active: false }, 'route_inactive'),
  'its public route loses the operation': publicRoute({ allowed_ops: ['insert'] }, 'operation_not_allowed'),
  'its public route shows less': publicRoute({ columns: ['id'] }, 'caller_changed'),
  'its client comes to need a key': async () => {
    const client = await registered()
    const needsKey = (enforce_api_keys: boolean) =>
      ok(operator.send('PUT', `/admin/api-key-clients/${client}`, { body: { enforce_api_keys } }))
    await needsKey(false)
    return { client, call: fetched(client, {}), end: () => needsKey(true), reason: 'api_key_required' }
  },
}

describe('a stream ends unfinished in each process, and its connection is free, when', {
  // Each stream has a session of the database, of which the pooler has four.
  concurrency: hasPooler() ? 1 : 3,
}, () => {
  for (const [when, begin] of Object.entries(CASES))
    patientTest(when, async () => {
      const { call, end, reason, client } = await begin()
      const streams = await inBoth(call)
      assert.ok((await running(client)) >= 2)
      await end()
      await expectEnd(streams, reason)
      await eventually(async () => (await running(client)) === 0)
    })
})

patientTest('a long answer that is complete in memory ends as well', async () => {
  const key = await keyFor('wide')
  const headers = { apikey: key.apiKey, 'x-service-client': 'wide' }
  const body = { query: `select n, repeat('x', 1000000) from generate_series(1, 25) n` }
  const streams = await inBoth({ path: '/gateway/query', headers, body })
  await ok(operator.send('DELETE', `/admin/api-keys/${key.keyId}`))
  await expectEnd(streams, 'invalid_api_key')
})

patientTest('a stream goes on when its key or its client changes in what it does not need', async () => {
  const client = await registered()
  const [kept, lost] = [await keyFor(client, ['big.read', 'note.read']), await keyFor(client)]
  const streams = await inBoth(fetched(client, { apikey: kept.apiKey }))
  await ok(
    operator.send('PATCH', `/admin/api-keys/${kept.keyId}`, { body: { rights: ['big.read'], name: 'less' } }),
  )
  await ok(operator.send('PATCH', `/admin/clients/${client}`, { body: { description: 'as before' } }))
  // All streams of a process are asked one after the other, so these have been asked when a later one has ended.
  const later = await inBoth(fetched(client, { apikey: lost.apiKey }))
  await ok(operator.send('DELETE', `/admin/api-keys/${lost.keyId}`))
  await expectEnd(later, 'invalid_api_key')
  for (const [index, service] of [here, elsewhere].entries()) {
    const stream = streams[index] ?? assert.fail()
    stream.hurry()
    assert.deepEqual([await stream.end, reasonIn(service, stream)], ['whole', undefined])
  }
})

patientTest(
  'a stream of a session that operates goes on when its proof gets old, and ends with the role',
  async () => {
    const root = await operatorOf(here, 'admin')
    const streams = await inBoth(fetched('app', { ...OPERATE, authorization: `Bearer ${root.token}` }))
    await ageProof(here, root, 11)
    const lost = await keyFor('wide')
    const later = await inBoth(fetched('wide', { apikey: lost.apiKey }))
    await ok(operator.send('DELETE', `/admin/api-keys/${lost.keyId}`))
    await expectEnd(later, 'invalid_api_key')
    expectOpen(streams)
    await asAdmin('set-role', { userId: root.id, role: 'user' })
    await expectEnd(streams, 'insufficient_rights')
  },
)

patientTest('a stream ends when its key expires, and after limits.stream_time at any rate', async () => {
  const brief = await here.key(['*'], {
    client_name: 'wide',
    expires_at: new Date(here.service.kernel.now().getTime() + 60_000).toISOString(),
  })
  const streams = await inBoth(fetched('wide', { apikey: brief.apiKey }))
  const lasting = await inBoth(fetched('wide', { apikey: (await keyFor('wide')).apiKey }))
  clock.advance(61_000)
  await expectEnd(streams, 'expired_api_key')
  expectOpen(lasting)
  clock.advance(540_000)
  await expectEnd(lasting, 'stream_time')
})
