import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { type Actor, type Answer, actor } from '#test/harness.ts'
import { impersonated, sessionIdOf } from '#test/permissions/impersonated.ts'
import { createTenants } from '#test/tenants.ts'

/** An import has the rights and the refusals of an insert of the same rows. */

const { t, sql, changeControlDatabase, users, acme, beta, anon, signedIn } = await createTenants()
await withClient(t.clientUrl, (client) =>
  client.query(
    'create table book (id int primary key, title text, code text unique); create table other (id int primary key)',
  ),
)
const FILE = 'id,title\n1,one\n'
const send = (who: Actor, raw = FILE, query: Record<string, string> = {}): Promise<Answer> => {
  const address = `/gateway/import?${new URLSearchParams({ table_name: 'book', ...query })}`
  return who.send('POST', address, { raw, headers: { 'content-type': 'text/csv' } })
}
const insert = (who: Actor, more: object = {}) =>
  who.send('PUT', '/gateway/insert', {
    body: { table_name: 'book', insert_body: { id: 1, title: 'one' }, head: true, ...more },
  })
const books = async () => {
  const { rows } = await withClient(t.clientUrl, (client) => client.query('select id from book'))
  return rows.length
}
const clear = () => withClient(t.clientUrl, (client) => client.query('truncate book'))
const told = ({ status, body }: Answer) => [
  status,
  body.code ?? null,
  body.data?.details?.required_right ?? null,
]

test('an import needs the rights that the insert needs, for each kind of caller', async () => {
  const headers = { 'x-service-client': 'default' }
  const unbound = await t.key(['*'], { client_name: null })
  const callers: Readonly<Record<string, Actor>> = {
    'no key': actor(t.url, headers),
    'an invalid key': actor(t.url, { ...headers, apikey: 'svc_0123456789abcdef.none' }),
    'a key of another client': actor(t.url, {
      ...(await t.key(['*'], { client_name: 'wide' })).headers,
      ...headers,
    }),
    'an unknown client': actor(t.url, { ...unbound.headers, 'x-service-client': 'nowhere' }),
    'no client': actor(t.url, { apikey: unbound.apiKey }),
    'the right to read': await t.key(['book.read', 'gateway.read']),
    'the right to delete': await t.key(['book.delete']),
    'the right to another table': await t.key(['other.*']),
    'the right to SQL': await t.key(['gateway.query', 'pipelines.run']),
    'the right to write': await t.key(['book.write']),
    'the right to write all tables': await t.key(['gateway.write']),
    'all rights': await t.key(['*']),
    'the admin key': actor(t.url, { ...t.admin.headers, ...headers }),
    'the logging client': actor(t.url, { ...t.admin.headers, 'x-service-client': 'logging' }),
  }
  let allowed = 0
  for (const [name, who] of Object.entries(callers)) {
    for (const query of [{}, { dry_run: 'true' }]) {
      await clear()
      const expected = await insert(who)
      await clear()
      const answer = await send(who, FILE, query)
      assert.deepEqual(told(answer), told(expected), `${name}: ${answer.text}`)
      const stored = answer.status === 200 && !('dry_run' in query)
      assert.equal(await books(), stored ? 1 : 0, name)
      if (stored) allowed++
    }
  }
  assert.equal(allowed, 4)
})

test('a key that may not read learns nothing of values, and needs the right to read for on_conflict as an insert does', async () => {
  await clear()
  const writer = await t.key(['book.write'])
  assert.equal((await send(writer, 'id,title,code\n1,one,a\n')).status, 200)
  const taken = await send(writer, 'id,title,code\n2,two,a\n')
  assert.equal(taken.body.data.errors[0].code, 'unique_violation')
  const own = await insert(writer, { insert_body: { id: 2, title: 'two', code: 'a' } })
  const { message, error } = own.body
  assert.equal(taken.body.data.errors[0].error, message === error ? message : `${message}: ${error}`)
  const conflict = { on_conflict: 'code' }
  assert.deepEqual(told(await send(writer, FILE, conflict)), told(await insert(writer, conflict)))
})

test('a frozen client takes no import', async () => {
  const database = new URL(t.clientUrl)
  const made = await t.admin.post('/admin/clients', { client_name: 'ice', url: database.href })
  assert.equal(made.status, 201, made.text)
  const frozen = await t.admin.send('PUT', '/admin/clients/ice/freeze', { body: { is_frozen: true } })
  assert.equal(frozen.status, 200)
  const who = actor(t.url, { ...t.admin.headers, 'x-service-client': 'ice' })
  assert.deepEqual(told(await send(who)).slice(0, 2), [403, 'client_frozen'])
})

test('policies refuse rows one by one, and a session that only looks imports nothing', async () => {
  const doc = { table_name: 'doc' }
  const file = `id,organization_id,title\n11,${acme},mine\n12,${beta},theirs\n13,${acme},mine too\n`
  const imported = await send(signedIn(users.ada), file, doc)
  assert.equal(imported.status, 200, imported.text)
  const { rows_inserted, errors } = imported.body.data
  assert.equal(rows_inserted, 2)
  assert.deepEqual([errors.length, errors[0].row, errors[0].code], [1, 2, 'permission_denied'])
  assert.deepEqual(await sql('select id from doc where id > 10 order by id'), [{ id: 11 }, { id: 13 }])

  const dry = await send(signedIn(users.ada), file.replaceAll(/^1/gm, '2'), { ...doc, dry_run: 'true' })
  assert.deepEqual([dry.body.data.would_insert, dry.body.data.rows_refused], [2, 1])
  assert.deepEqual(told(await send(anon, file, doc)).slice(0, 2), [403, 'permission_denied'])
  const forged = actor(t.url, { ...anon.headers, authorization: 'Bearer forged' })
  assert.deepEqual(told(await send(forged, file, doc)).slice(0, 2), [401, 'invalid_session'])

  await changeControlDatabase(`update service."user" set role = 'admin' where id = $1`, [users.bea.id])
  const { token } = await impersonated(t, users.bea, users.ada, { parentId: await sessionIdOf(users.bea) })
  const looking = actor(t.url, { 'x-service-client': 'app', 'x-service-auth-session-token': token })
  const refused = await send(looking, `id,organization_id,title\n31,${acme},x\n`, doc)
  assert.deepEqual(told(refused).slice(0, 2), [403, 'not_while_impersonating'])
  assert.deepEqual(await sql('select id from doc where id > 13'), [])
})
