import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { type Actor, actor, PASSWORD } from '#test/harness.ts'
import { createTenants, docsOf, fetchDocs, insertDoc, whoIs } from '#test/tenants.ts'

const { t, sql, changeControlDatabase, roles, users, acme, beta, anon, signedIn } = await createTenants()
const { ada, bea, cem, dora } = users

test('a thousand interleaved requests with prepared statements, failures and transactions keep their callers apart', async () => {
  const callers = [
    { who: anon, role: roles.anon, user: undefined, ids: [3] },
    { who: signedIn(ada), role: roles.member, user: ada.id, ids: [1, 3] },
    { who: signedIn(cem), role: roles.member, user: cem.id, ids: [2, 3] },
    { who: signedIn(dora), role: roles.member, user: dora.id, ids: [3, 4] },
  ]
  const admin = actor(t.url, { 'x-service-client': 'app', ...t.admin.headers })
  const ways = [
    async (p: (typeof callers)[number]) => assert.deepEqual(await docsOf(p.who), p.ids),
    async (p: (typeof callers)[number]) => {
      const { role, claims } = await whoIs(p.who)
      assert.deepEqual([role, claims.user_id], [p.role, p.user])
    },
    // Fails in the statement, after SET ROLE.
    async (p: (typeof callers)[number]) =>
      assert.equal(
        (await insertDoc(p.who, { id: 1, organization_id: randomUUID(), title: 'x' })).status,
        403,
      ),
    async (p: (typeof callers)[number]) =>
      assert.equal((await p.who.post('/gateway/fetch', { table_name: 'plain' })).status, 403),
    // Fails while the server parses the values.
    async (p: (typeof callers)[number]) =>
      assert.equal(
        (await fetchDocs(p.who, { conditions: [{ eq_column: 'id', eq_value: 'no' }] })).status,
        422,
      ),
    async (p: (typeof callers)[number]) => {
      const answer = await p.who.post('/gateway/transaction', {
        operations: [
          { id: 'who', kind: 'fetch', payload: { table_name: 'who' } },
          { id: 'bad', kind: 'insert', payload: { table_name: 'doc', insert_body: { id: 1, title: 'x' } } },
        ],
      })
      assert.equal(answer.status, 403, answer.text)
    },
    async (p: (typeof callers)[number]) => {
      const answer = await p.who.post('/rpc/whoami')
      assert.deepEqual(
        [answer.body.data[0].whoami.role, answer.body.data[0].whoami.claims.user_id],
        [p.role, p.user],
      )
    },
    async () => {
      const { role, claims } = await whoIs(admin)
      assert.deepEqual([role, claims], [roles.owner, {}])
    },
  ]
  const requests = Array.from({ length: 1_000 }, (_, index) => async () => {
    const person = callers[(index * 7) % callers.length]
    const way = ways[(index * 3 + Math.floor(index / 8)) % ways.length]
    assert.ok(person && way)
    await way(person)
  })
  const queue = requests.values()
  const worker = async () => {
    for (const request of queue) await request()
  }
  await Promise.all(Array.from({ length: 16 }, worker))
  // Both sessions of the pool are unchanged, and nothing was written.
  assert.equal((await sql('select from doc')).length, 4)
  assert.deepEqual(await docsOf(anon), [3])
})

test('insert windows only batch inserts of the same session', async () => {
  const insert = (who: Actor, id: number, organization_id: string) =>
    insertDoc(who, { id, organization_id, title: 'w' }, { 'x-service-insert-window': '100' })
  const answers = await Promise.all([
    insert(signedIn(ada), 30, acme),
    insert(signedIn(cem), 31, beta),
    insert(signedIn(ada), 32, acme),
    insert(signedIn(cem), 33, acme),
    insert(anon, 34, acme),
  ])
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 403, 403],
  )
  assert.deepEqual(
    (await sql('select id from doc where id >= 30 order by id')).map(({ id }) => id),
    [30, 31, 32],
  )
  await sql('delete from doc where id >= 30')
})

test('each row of a window belongs to the session that sent it', async () => {
  const note = (who: Actor, id: number) =>
    who.send('PUT', '/gateway/insert', {
      headers: { 'x-service-insert-window': '100' },
      body: { table_name: 'note', insert_body: { id, doc_id: 1, text: 'w' } },
    })
  const answers = await Promise.all([note(signedIn(ada), 50), note(signedIn(bea), 51)])
  assert.deepEqual(
    answers.map(({ text, body }) => body.data[0]?.author ?? text),
    [ada.id, bea.id],
  )
  await sql('delete from note where id >= 50')
})

test('idempotency keys are separate for each user, and responses are not replayed after a change of organization', async () => {
  const transact = (who: Actor) =>
    who.post(
      '/gateway/transaction',
      {
        operations: [
          {
            id: 'who',
            kind: 'fetch',
            payload: { table_name: 'doc', columns: 'id', sort_by: { field: 'id' } },
          },
        ],
      },
      { headers: { 'idempotency-key': 'the same' } },
    )
  const seen = async (who: Actor) => {
    const answer = await transact(who)
    assert.equal(answer.status, 200, answer.text)
    return answer.body.results[0].data.map(({ id }: { id: number }) => id)
  }
  assert.deepEqual(await seen(signedIn(ada)), [1, 3])
  assert.deepEqual(await seen(signedIn(cem)), [2, 3])
  assert.deepEqual(await seen(anon), [3])
  await sql(`insert into doc values (40, '${acme}', null, 'later', false)`)
  assert.deepEqual(await seen(signedIn(ada)), [1, 3])
  // Another session of the same user with the same organization.
  const again = await t.anon.post('/api/auth/sign-in/email', { email: ada.email, password: PASSWORD })
  await changeControlDatabase('update service.session set active_organization_id = $1 where user_id = $2', [
    acme,
    ada.id,
  ])
  assert.deepEqual(await seen(signedIn({ ...ada, token: again.headers.get('set-auth-token') ?? '' })), [1, 3])
  await sql('delete from doc where id = 40')
  await changeControlDatabase('update service.session set active_organization_id = null where user_id = $1', [
    ada.id,
  ])
  assert.equal((await transact(signedIn(ada))).body.code, 'idempotency_key_reused')
  // Callers cannot read the idempotency table, even if default privileges grant it to them.
  await sql(`grant select on service_idempotency to ${roles.member}`)
  const kept = 'select count(*)::int as kept from service_idempotency'
  assert.notDeepEqual(await sql(kept), [{ kept: 0 }])
  assert.deepEqual(await sql(kept, roles.member), [{ kept: 0 }])
})

test('each caller has a separate cache key', async () => {
  const keys = await Promise.all(
    [anon, signedIn(ada), signedIn(cem)].map(async (who) => (await fetchDocs(who)).body.cache_key),
  )
  assert.equal(new Set(keys).size, 3)
})
