import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actor } from '#test/harness.ts'
import { whileArriving } from '#test/slow-body.ts'
import { createTenants, docsOf, fetchDocs, whoIs } from '#test/tenants.ts'

const { t, sql, roles, users, signedIn } = await createTenants()
const { ada, cem } = users

test('a session is accepted by cookie, by either header, or as Bearer token together with a key in another header', async () => {
  const cookie = `service-auth.session-token=${ada.token}`
  const key = (await t.key(['gateway.read'], { client_name: 'wide' })).apiKey
  const carried: Record<string, string>[] = [
    { 'x-service-auth-session-token': ada.token },
    { 'x-service-auth-bearer-token': ada.token },
    { 'x-service-auth-bearer-token': `Bearer ${ada.token}` },
    { authorization: `Bearer ${ada.token}` },
    { cookie },
    { cookie: `service-auth.session-token=${cem.token}`, authorization: `Bearer ${ada.token}` },
  ]
  for (const headers of carried) {
    assert.deepEqual(await docsOf(actor(t.url, { 'x-service-client': 'app', ...headers })), [1, 3])
    assert.deepEqual(
      await docsOf(actor(t.url, { 'x-service-client': 'wide', apikey: key, ...headers })),
      [1, 3],
    )
  }
  assert.deepEqual(
    await docsOf(actor(t.url, { 'x-service-client': 'wide', authorization: `Bearer ${key}`, cookie })),
    [1, 3],
  )
})

test('a session cookie requires a trusted origin, except for a read by GET', async () => {
  const cookie = `service-auth.session-token=${ada.token}`
  const page = (origin: string) => actor(t.url, { 'x-service-client': 'app', cookie, origin })
  const own = new URL(t.url).origin
  assert.deepEqual(await docsOf(page(own)), [1, 3])
  const foreign = await fetchDocs(page('https://evil.example'))
  assert.deepEqual([foreign.status, foreign.body.code], [403, 'invalid_origin'])
  assert.match(foreign.body.message, /server\.public_url .*auth\.trusted_origins/)
  const opaque = await fetchDocs(page('null'))
  assert.deepEqual([opaque.status, opaque.body.code], [403, 'missing_or_null_origin'])
  assert.equal((await page('https://evil.example').get('/data?view=doc&eq_column=id&eq_value=1')).status, 200)
  // Browsers do not add a token header by themselves.
  const byHeader = actor(t.url, {
    'x-service-client': 'app',
    authorization: `Bearer ${ada.token}`,
    origin: 'https://evil.example',
  })
  assert.deepEqual(await docsOf(byHeader), [1, 3])
})

test('an invalid session gets 401, never the anonymous role, and two different sessions are rejected', async () => {
  const made = 'A'.repeat(43)
  for (const token of [made, 'short', `${ada.token}x`, `svc_${made}`]) {
    const answer = await fetchDocs(signedIn({ ...ada, token }))
    assert.deepEqual([answer.status, answer.body.code], [401, 'invalid_session'])
  }
  for (const authorization of [`Bearer ${made}`, `Bearer ${ada.token} ${ada.token}`, 'Bearer !'])
    assert.equal((await fetchDocs(actor(t.url, { 'x-service-client': 'app', authorization }))).status, 401)
  const ended = await t.signUp('Eve')
  assert.equal((await fetchDocs(signedIn(ended))).status, 200)
  await ended.post('/api/auth/sign-out')
  assert.equal((await fetchDocs(signedIn(ended))).status, 401)
  const two = await fetchDocs(signedIn(ada, { authorization: `Bearer ${cem.token}` }))
  assert.deepEqual([two.status, two.body.code], [400, 'ambiguous_session'])
})

test('a session that ends while the body arrives gets 401', async () => {
  const gil = await t.signUp('Gil')
  const headers = { 'x-service-auth-session-token': gil.token, 'x-service-client': 'app' }
  const answer = await whileArriving(
    t.url,
    { path: '/gateway/fetch', headers, body: { table_name: 'doc' } },
    () => gil.post('/api/auth/sign-out'),
  )
  assert.match(answer, /401 Unauthorized.*invalid_session/s)
})

test('the API key is checked before the session', async () => {
  const wide = (headers: Record<string, string>) => actor(t.url, { 'x-service-client': 'wide', ...headers })
  const session = { 'x-service-auth-session-token': ada.token }
  const without = await fetchDocs(wide(session))
  assert.deepEqual([without.status, without.body.code], [401, 'api_key_required'])
  // Here, a Bearer token without the form of a key is a session.
  const bearer = await fetchDocs(wide({ authorization: `Bearer ${ada.token}` }))
  assert.deepEqual([bearer.status, bearer.body.code], [401, 'api_key_required'])
  const weak = await t.key(['note.read'], { client_name: 'wide' })
  assert.equal((await fetchDocs(wide({ apikey: weak.apiKey, ...session }))).body.code, 'insufficient_rights')
})

test("without a session, the admin key and keys with the right to bypass policies act as the client's own role; wildcards do not include that right", async () => {
  const wide = (apikey: string) => actor(t.url, { 'x-service-client': 'wide', apikey })
  const roleOf = async (apikey: string) => (await whoIs(wide(apikey))).role
  const key = async (rights: string[]) => (await t.key(rights, { client_name: 'wide' })).apiKey
  assert.equal(await roleOf(adminKey), roles.owner)
  assert.equal(await roleOf(await key(['gateway.*', 'gateway.bypass_row_level_security'])), roles.owner)
  for (const rights of [['*'], ['gateway.*'], ['gateway.read'], ['*.read', 'management.*']])
    assert.equal(await roleOf(await key(rights)), roles.anon)
})

const adminKey = t.admin.headers.apikey ?? ''
const bypassing = (await t.key(['*', 'gateway.bypass_row_level_security'], { client_name: 'wide' })).apiKey
/** The ways of presenting a session token beside a key. */
const carriers: readonly ((token: string) => Record<string, string>)[] = [
  (token) => ({ 'x-service-auth-session-token': token }),
  (token) => ({ 'x-service-auth-bearer-token': `Bearer ${token}` }),
  (token) => ({ authorization: `Bearer ${token}` }),
  (token) => ({ authorization: `Bearer\t${token}` }),
  (token) => ({ cookie: `service-auth.session-token=${token}`, origin: new URL(t.url).origin }),
]
/** Every kind of data operation, each of which touches document 2. */
const operations: readonly (readonly [string, string, object])[] = [
  ['POST', '/gateway/fetch', { table_name: 'doc', conditions: [{ eq_column: 'id', eq_value: 2 }] }],
  ['POST', '/query/count', { table_name: 'doc', conditions: [{ eq_column: 'id', eq_value: 2 }] }],
  ['GET', '/data?view=doc&eq_column=id&eq_value=2', {}],
  ['PUT', '/gateway/insert', { table_name: 'doc', insert_body: { id: 77, title: 'x' } }],
  ['POST', '/gateway/update', { table_name: 'doc', set: { title: 'x' }, where: { id: 2 } }],
  ['DELETE', '/gateway/delete', { table_name: 'doc', resource_id: 2 }],
  [
    'POST',
    '/gateway/transaction',
    { operations: [{ id: 'a', kind: 'delete', payload: { table_name: 'doc', resource_id: 2 } }] },
  ],
  ['POST', '/gateway/rpc', { function: 'whoami' }],
  ['POST', '/rpc/whoami', {}],
  ['POST', '/pipelines', { source: { table_name: 'doc' }, sink: { table_name: 'plain' } }],
  ['POST', '/pipelines/simulate', { source: { table_name: 'doc' } }],
]

test('a presented session decides about role and claims whatever the key, and an invalid one is never the role of the client', async () => {
  const before = await sql('select * from doc order by id')
  for (const apikey of [adminKey, bypassing])
    for (const carried of carriers) {
      const as = (token: string) => actor(t.url, { 'x-service-client': 'wide', apikey, ...carried(token) })
      assert.equal((await whoIs(as(ada.token))).claims.user_id, ada.id)
      assert.deepEqual(await docsOf(as(ada.token)), [1, 3])
      for (const [method, path, body] of operations) {
        const answer = await as('A'.repeat(43)).send(method, path, method === 'GET' ? {} : { body })
        assert.deepEqual(
          [answer.status, answer.body.code],
          [401, 'invalid_session'],
          `${path} ${answer.text}`,
        )
      }
    }
  assert.deepEqual(await sql('select * from doc order by id'), before)
})

test('a key that bypasses policies does not excuse a cookie that another site may have sent, nor two sessions', async () => {
  const cookie = `service-auth.session-token=${ada.token}`
  for (const apikey of [adminKey, bypassing]) {
    const headers = { 'x-service-client': 'wide', apikey }
    const foreign = await fetchDocs(actor(t.url, { ...headers, cookie, origin: 'https://evil.example' }))
    assert.deepEqual([foreign.status, foreign.body.code], [403, 'invalid_origin'])
    const two = await fetchDocs(
      actor(t.url, {
        ...headers,
        'x-service-auth-session-token': ada.token,
        authorization: `Bearer ${cem.token}`,
      }),
    )
    assert.deepEqual([two.status, two.body.code], [400, 'ambiguous_session'])
  }
})

test('both halves read the same token from Authorization', async () => {
  for (const [between, after, isValid] of [
    [' ', '', true],
    ['\t', '', true],
    [' \t ', ' \t', true],
    [' ', ' x', false],
    ['', '', false],
  ] as const) {
    const authorization = `bEARER${between}${ada.token}${after}`
    const session = await actor(t.url, { authorization }).get('/api/auth/get-session')
    assert.equal(session.body?.user?.id, isValid ? ada.id : undefined, authorization)
    const docs = await fetchDocs(actor(t.url, { 'x-service-client': 'app', authorization }))
    if (isValid) assert.deepEqual(docs.body.data.length, 2)
    else assert.notEqual(docs.body.data?.length, 2)
  }
})

test('both halves read the same token from cookies, and from a header first', async () => {
  const cookie = (...tokens: readonly string[]) =>
    tokens.map((token) => `service-auth.session-token=${token}`).join('; ')
  const sent: readonly [Record<string, string>, string | undefined][] = [
    [{ authorization: `Bearer ${ada.token}`, cookie: cookie(cem.token) }, ada.id],
    [{ authorization: 'Bearer', cookie: cookie(cem.token) }, cem.id],
    [{ authorization: `Basic ${ada.token}`, cookie: cookie(cem.token) }, cem.id],
    [{ cookie: cookie(ada.token, cem.token) }, ada.id],
    [{ cookie: cookie('', ada.token) }, undefined],
  ]
  for (const [headers, userId] of sent) {
    const session = await actor(t.url, headers).get('/api/auth/get-session')
    assert.equal(session.body.user?.id, userId, JSON.stringify(headers))
    const { claims } = await whoIs(actor(t.url, { 'x-service-client': 'app', ...headers }))
    assert.equal(claims.user_id, userId, JSON.stringify(headers))
  }
})

test('a key as Bearer token is no session', async () => {
  for (const key of [adminKey, bypassing])
    assert.equal(
      (await whoIs(actor(t.url, { 'x-service-client': 'wide', authorization: `Bearer ${key}` }))).role,
      roles.owner,
    )
})

test('SQL with a session is refused, because it cannot act as it', async () => {
  for (const apikey of [adminKey, bypassing])
    for (const [token, status, code] of [
      [ada.token, 400, 'sql_with_session'],
      ['A'.repeat(43), 401, 'invalid_session'],
    ] as const)
      for (const carried of carriers)
        for (const path of ['/gateway/query', '/query/sql', '/gateway/sql']) {
          const who = actor(t.url, { 'x-service-client': 'wide', apikey, ...carried(token) })
          const answer = await who.post(path, { driver: 'postgresql', query: 'select title from doc' })
          assert.deepEqual([answer.status, answer.body.code], [status, code], answer.text)
        }
})

test("a caller's own SQL requires the right to bypass policies", async () => {
  const run = (apikey: string) =>
    actor(t.url, { 'x-service-client': 'wide', apikey }).post('/gateway/query', {
      query: 'select title from doc',
    })
  const refused = await run((await t.key(['*'], { client_name: 'wide' })).apiKey)
  assert.deepEqual([refused.status, refused.body.code], [403, 'insufficient_rights'])
  assert.match(refused.body.error, /gateway\.bypass_row_level_security/)
  const rights = ['gateway.query', 'gateway.bypass_row_level_security']
  const passed = await run((await t.key(rights, { client_name: 'wide' })).apiKey)
  assert.equal(passed.body.data.length, 4)
  assert.equal((await run(t.admin.headers.apikey ?? '')).status, 200)
})
