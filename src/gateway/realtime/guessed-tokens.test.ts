import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HEADER } from '#kernel/http/header-names.ts'
import { openStream } from '#test/event-stream.ts'
import { createSecuredTables } from '#test/secured-tables.ts'

const MAX = 20
const { t, sql, users, admin, adas, stranger, roles } = await createSecuredTables({
  server: { trusted_proxies: ['127.0.0.1'] },
  rate_limits: { enabled: true, rules: { default: { requests: MAX } } },
})
const made = await admin.post('/gateway/query', {
  query: `create table note (id int primary key, text text); alter table note enable row level security;
    create policy everything on note for select to ${roles.member} using (true); grant select on note to ${roles.member}`,
})
assert.equal(made.status, 200, made.text)
const enabled = await admin.send('PUT', '/management/tables/note/realtime', { body: { enabled: true } })
assert.equal(enabled.status, 200, enabled.text)
const { db, coherence } = t.service.kernel
const TOKENS: Readonly<Record<string, () => Promise<string>>> = {
  session: async () => users.ada.token,
  'JWT of a session': async () => (await users.ada.get('/api/auth/token')).body.token,
}

for (const [index, [kind, tokenOf]] of Object.entries(TOKENS).entries())
  test(`a stream by the ${kind} goes on while others at its address guess tokens`, async () => {
    const at = { 'x-forwarded-for': `203.0.113.${index + 1}` }
    const stream = await openStream(`${t.url}/realtime`, {
      headers: { ...adas.headers, ...at, authorization: `Bearer ${await tokenOf()}` },
      body: { tables: [{ table_name: 'note' }] },
    })
    await stream.next('ready')
    const guess = async () => {
      const headers = { ...at, authorization: `Bearer ${'x'.repeat(43)}` }
      return (await stranger.post('/gateway/fetch', { table_name: 'note' }, { headers })).status
    }
    for (let guesses = 0; guesses < MAX; guesses++) assert.equal(await guess(), 401)
    assert.equal(await guess(), 429)
    // The process forgets the session, and has to look it up again.
    await db
      .updateTable('user')
      .set({ name: `Ada ${index}` })
      .where('id', '=', users.ada.id)
      .execute()
    await coherence.settle()
    await sql(`insert into note (id, text) values (${index}, 'later')`)
    assert.equal((await stream.next('change')).data.row.text, 'later')
    stream.close()
  })

test('a stream by the admin key through a route goes on while others at its address guess admin keys', async () => {
  const facts = { client_name: 'app', table_name: 'note', requires_key: true, run_as: 'owner' }
  const route = { route_key: 'notes', allowed_ops: ['subscribe'], ...facts }
  const added = await t.admin.post('/admin/public-routes', route)
  assert.equal(added.status, 201, added.text)
  const at = { 'x-forwarded-for': '203.0.113.9' }
  const { headers } = t.admin
  const stream = await openStream(`${t.url}/public/notes/subscribe`, {
    method: 'GET',
    headers: { ...headers, ...at },
  })
  await stream.next('ready')
  const guess = async () => {
    const guessed = { ...at, [HEADER.adminKey]: 'guessed' }
    return (await stranger.get('/admin/clients', { headers: guessed })).status
  }
  while ((await guess()) !== 429);
  await sql(`insert into note (id, text) values (9, 'later')`)
  assert.equal((await stream.next('change')).data.row.text, 'later')
  stream.close()
})
