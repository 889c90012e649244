import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shapes, VAULT_TABLES, vaultRows } from '#test/data-shapes.ts'
import { withClient } from '#test/database.ts'
import { type Actor, type Answer, actor } from '#test/harness.ts'
import { createTenants } from '#test/tenants.ts'

/** A read as CSV has the rights, the policies and the refusals of the same read as JSON. */

const { t, users, anon, signedIn } = await createTenants()
const SECRET = 'alpha'
await withClient(t.clientUrl, async (client) => {
  await client.query(VAULT_TABLES)
  await client.query(vaultRows(SECRET))
})

type Read = { readonly path: string; readonly body?: object }
const ask = (who: Actor, { path, body }: Read, accept: string): Promise<Answer> => {
  const headers = { accept }
  return body === undefined ? who.get(path, { headers }) : who.post(path, body, { headers })
}

const withoutId = (text: string) => text.replace(/"request_id":"[^"]*"/, '')

/** The cells that the rows of a JSON answer must become; none of the values needs quotes but JSON. */
function expectedOf({ body }: Answer): string {
  const rows = body.data as Record<string, unknown>[]
  const cell = (value: unknown) => (value === null ? '' : String(value))
  return rows.map((row) => `${Object.values(row).map(cell).join(',')}\r\n`).join('')
}

async function expectSame(who: Actor, read: Read, what: string): Promise<boolean> {
  const json = await ask(who, read, 'application/json')
  const csv = await ask(who, read, 'text/csv')
  assert.equal(csv.status, json.status, `${what}: ${csv.text}`)
  if (json.status !== 200) assert.equal(withoutId(csv.text), withoutId(json.text), what)
  else assert.equal(csv.text.slice(csv.text.indexOf('\r\n') + 2), expectedOf(json), what)
  return json.status === 200
}

test('each shape of a read needs the rights that it needs as JSON, and fails as JSON does', async () => {
  const reads = Object.entries(shapes(SECRET)).flatMap(([name, { kind, body }]): [string, Read][] => {
    // Groups have no CSV, and members that are null stay cells.
    if ('group_by' in body || 'strip_nulls' in body || !['fetch', 'data'].includes(kind)) return []
    if (kind === 'fetch') return [[name, { path: '/gateway/fetch', body }]]
    const { table_name: view, ...rest } = body
    const query = new URLSearchParams({ view: String(view), ...(rest as Record<string, string>) }) // texts
    return [[name, { path: `/data?${query}` }]]
  })
  assert.ok(reads.length > 30)
  for (const rights of [[], ['vault.write', 'vault.delete'], ['vault.read'], ['person.read'], ['*']]) {
    const who = await t.key(rights)
    let done = 0
    for (const [name, read] of reads)
      if (await expectSame(who, read, `${name} with ${rights.join(', ')}`)) done++
    const mayRead = rights.includes('vault.read') || rights.includes('*')
    assert.equal(done > 20, mayRead)
    if (!mayRead) assert.equal(done, 0)
  }
  const relation = {
    path: '/gateway/fetch',
    body: { table_name: 'vault', columns: 'id,person(email_address)' },
  }
  const reader = await t.key(['vault.read'])
  const refused = await ask(reader, relation, 'text/csv')
  assert.deepEqual([refused.status, refused.body.code], [403, 'insufficient_rights'])
})

test('without a key, with a foreign key, a foreign client and an unknown one nothing is told', async () => {
  const read = { path: '/gateway/fetch', body: { table_name: 'vault' } }
  const headers = { 'x-service-client': 'default' }
  const unknown = await t.key(['*'], { client_name: null })
  const callers = [
    actor(t.url, headers),
    actor(t.url, { ...headers, apikey: 'svc_0123456789abcdef.none' }),
    actor(t.url, { ...(await t.key(['*'])).headers, 'x-service-client': 'app' }),
    actor(t.url, { ...unknown.headers, 'x-service-client': 'nowhere' }),
  ]
  for (const who of callers) assert.equal(await expectSame(who, read, 'a stranger'), false)
})

test('the policies of the database decide about each row', async () => {
  const admin = actor(t.url, { ...t.admin.headers, 'x-service-client': 'app' })
  const lines = new Set<string>()
  for (const who of [anon, signedIn(users.ada), signedIn(users.cem), signedIn(users.dora), admin]) {
    const read = { path: '/gateway/fetch', body: { table_name: 'doc', columns: 'id', sort_by: 'id' } }
    assert.ok(await expectSame(who, read, 'documents'))
    lines.add((await ask(who, read, 'text/csv')).text)
    const hidden = { path: '/gateway/fetch', body: { table_name: 'plain' } }
    assert.equal(await expectSame(who, hidden, 'a table without policy'), who === admin)
  }
  assert.equal(lines.size, 5, 'each caller sees other rows')
  const forged = actor(t.url, { ...anon.headers, authorization: 'Bearer forged' })
  const answer = await ask(forged, { path: '/gateway/fetch', body: { table_name: 'doc' } }, 'text/csv')
  assert.equal(answer.status, 401)
})

test('SQL as CSV needs the right to SQL', async () => {
  const read = { path: '/gateway/query', body: { query: 'select id from vault order by id' } }
  for (const [rights, expected] of [
    [['vault.read', 'gateway.read'], 403],
    [['gateway.query.read'], 200],
    [['gateway.query'], 200],
  ] as const) {
    const who = await t.key(rights)
    assert.equal((await ask(who, read, 'text/csv')).status, expected, rights.join())
    await expectSame(who, read, rights.join())
  }
})
