import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actor } from '#test/harness.ts'
import { AUDIENCE, startJwtIssuer } from '#test/jwt-issuer.ts'
import { createTenants, docsOf, fetchDocs, whoIs } from '#test/tenants.ts'

const acme = await startJwtIssuer()
const {
  t,
  sql,
  roles,
  users,
  acme: acmeOrganization,
} = await createTenants(({ url, policies }) => ({
  outbound: { allow_http: true, allow_networks: ['127.0.0.0/8'] },
  clients: {
    jwt: {
      url,
      enforce_api_keys: false,
      row_level_security: {
        ...policies,
        issuers: [
          {
            issuer: acme.issuer,
            audience: [AUDIENCE],
            role_claim: '/realm/roles',
            claims_map: {
              organization_id: 'org',
              organization_role: 'org_role',
              plan: '/app/plan',
              email: 'email',
            },
            two_factor: { values: ['mfa', 'hwk'] },
          },
        ],
      },
    },
    guarded: {
      url,
      row_level_security: { ...policies, issuers: [{ issuer: acme.issuer, audience: [AUDIENCE] }] },
    },
    filled: {
      url,
      enforce_api_keys: false,
      row_level_security: { ...policies, request_jwt_claims: true },
    },
    foreign: {
      url,
      enforce_api_keys: false,
      row_level_security: {
        ...policies,
        own_sessions: false,
        request_jwt_claims: true,
        issuers: [{ issuer: acme.issuer, audience: [AUDIENCE], claims_map: { organization_id: 'org' } }],
      },
    },
  },
}))
await sql(`create view seen as select current_user::text as role, current_setting('request.claims', true) as claims,
    current_setting('request.jwt.claims', true) as jwt_claims;
  create function uid() returns uuid language sql stable as $$ select (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')::uuid $$;
  create table task (id int primary key, owner uuid default uid());
  alter table task enable row level security;
  create policy own on task using (owner = uid());
  grant select on seen to ${roles.anon}, ${roles.member};
  grant select, insert on task to ${roles.member}`)

const client = (name: string, headers: Record<string, string> = {}) =>
  actor(t.url, { 'x-service-client': name, ...headers })
const bearer = (name: string, token: string, headers: Record<string, string> = {}) =>
  client(name, { authorization: `Bearer ${token}`, ...headers })

test('a JWT of the issuer decides who the user is, and the role of the database is always that of signed-in users', async () => {
  const token = await acme.sign({
    sub: 'auth0|ada',
    org: 'org_1',
    org_role: ['admin', 'billing'],
    realm: { roles: ['editor', 'superuser'] },
    role: 'postgres',
    app: { plan: { name: 'gold' } },
    email: 'ada@example.com',
    acr: 'mfa',
  })
  const { role, claims } = await whoIs(bearer('jwt', token))
  assert.equal(role, roles.member)
  assert.deepEqual(claims, {
    plan: { name: 'gold' },
    email: 'ada@example.com',
    user_id: 'auth0|ada',
    session_id: null,
    role: 'editor,superuser',
    organization_id: 'org_1',
    organization_role: 'admin,billing',
    two_factor: true,
    impersonated_by: null,
  })
})

test('without mapped claims policies see the user only, without role, organization and second factor', async () => {
  const token = await acme.sign({
    sub: 'x',
    org: null,
    role: 'admin',
    two_factor: true,
    session_id: 's',
    acr: 'pwd',
  })
  const { claims } = await whoIs(bearer('jwt', token))
  assert.deepEqual(claims, {
    user_id: 'x',
    session_id: null,
    role: null,
    organization_id: null,
    organization_role: null,
    two_factor: false,
    impersonated_by: null,
  })
})

test('a JWT is accepted in each header that carries a session, and not as a cookie', async () => {
  const token = await acme.sign({ sub: 'carried' })
  for (const headers of [
    { authorization: `Bearer ${token}` },
    { 'x-service-auth-bearer-token': `Bearer ${token}` },
    { 'x-service-auth-session-token': token },
  ])
    assert.equal((await whoIs(client('jwt', headers))).claims.user_id, 'carried')
  const cookie = await fetchDocs(
    client('jwt', { cookie: `service-auth.session-token=${token}`, origin: new URL(t.url).origin }),
  )
  assert.deepEqual([cookie.status, cookie.body.code], [401, 'invalid_session'])
})

test('a session and a JWT in one request are refused, in headers and beside a cookie', async () => {
  const { ada } = users
  const token = await acme.sign({ sub: 'two' })
  for (const other of [
    { 'x-service-auth-session-token': ada.token },
    { cookie: `service-auth.session-token=${ada.token}` },
    { 'x-service-auth-bearer-token': await acme.sign({ sub: 'other' }) },
  ]) {
    const answer = await fetchDocs(bearer('jwt', token, other))
    assert.deepEqual([answer.status, answer.body.code], [400, 'ambiguous_session'])
  }
})

test('sessions are accepted beside the JWTs of an issuer', async () => {
  assert.deepEqual(await docsOf(bearer('jwt', users.ada.token)), [1, 3])
  assert.deepEqual(await docsOf(client('jwt')), [3])
})

test('with own_sessions: false a session is refused, its cookie is not looked at, and a UUID is a user of the issuer', async () => {
  const { ada } = users
  const session = await fetchDocs(bearer('foreign', ada.token))
  assert.deepEqual([session.status, session.body.code], [401, 'invalid_session'])
  assert.match(session.body.error, /own_sessions/)
  const cookie = { cookie: `service-auth.session-token=${ada.token}` }
  assert.deepEqual(await docsOf(client('foreign', cookie)), [3])
  const token = await acme.sign({ sub: users.dora.id, org: acmeOrganization })
  assert.deepEqual(await docsOf(bearer('foreign', token, cookie)), [1, 3, 4])
})

test('beside own sessions a subject or an organization in any spelling of a UUID is refused', async () => {
  const { id } = users.ada
  const bare = id.replaceAll('-', '')
  for (const spelling of [id, id.toUpperCase(), `{${id}}`, bare, bare.replace(/(.{4})(?=.)/g, '$1-')]) {
    for (const [claims, setting] of [
      [{ sub: spelling }, 'subject_prefix'],
      [{ sub: 'x', org: spelling }, 'organization_prefix'],
    ] as const) {
      const answer = await fetchDocs(bearer('jwt', await acme.sign(claims)))
      assert.deepEqual([answer.status, answer.body.code], [401, 'jwt_invalid'])
      assert.match(answer.body.error, new RegExp(setting))
    }
  }
})

test('request.jwt.claims is filled where the setting says so, for JWTs and for the anonymous role, and policies with auth.uid() work', async () => {
  const seenBy = async (who: ReturnType<typeof client>) => {
    const answer = await who.post('/gateway/fetch', { table_name: 'seen' })
    assert.equal(answer.status, 200, answer.text)
    return answer.body.data[0]
  }
  const session = await seenBy(bearer('filled', users.ada.token))
  assert.deepEqual(JSON.parse(session.jwt_claims), {
    ...JSON.parse(session.claims),
    sub: users.ada.id,
    role: roles.member,
  })
  const user = users.dora.id
  const token = await acme.sign({ sub: user, role: 'service_role', email: 'unmapped@example.com' })
  const { claims, jwt_claims } = await seenBy(bearer('foreign', token))
  assert.deepEqual(JSON.parse(jwt_claims), { ...JSON.parse(claims), sub: user, role: roles.member })
  assert.deepEqual(JSON.parse((await seenBy(client('foreign'))).jwt_claims), { role: roles.anon })
  assert.ok(((await seenBy(client('jwt'))).jwt_claims ?? '') === '')
  assert.ok(((await seenBy(bearer('jwt', users.ada.token))).jwt_claims ?? '') === '')
  const as = bearer('foreign', token)
  const inserted = await as.send('PUT', '/gateway/insert', {
    body: { table_name: 'task', insert_body: { id: 1 } },
  })
  assert.deepEqual(inserted.body.data, [{ id: 1, owner: user }])
  assert.equal((await as.post('/gateway/fetch', { table_name: 'task' })).body.data.length, 1)
  const other = bearer('foreign', await acme.sign({ sub: users.cem.id }))
  assert.deepEqual((await other.post('/gateway/fetch', { table_name: 'task' })).body.data, [])
  const transaction = await as.post('/gateway/transaction', {
    operations: [{ id: 'a', kind: 'insert', payload: { table_name: 'task', insert_body: { id: 2 } } }],
  })
  assert.equal(transaction.body.data?.committed, true, transaction.text)
  assert.deepEqual(await sql('select id, owner from task order by id'), [
    { id: 1, owner: user },
    { id: 2, owner: user },
  ])
})

test('the key is checked first, and a JWT decides whatever the key', async () => {
  const token = await acme.sign({ sub: 'keyed' })
  assert.equal((await fetchDocs(bearer('guarded', token))).body.code, 'api_key_required')
  const { apiKey } = await t.key(['*', 'gateway.bypass_row_level_security'], { client_name: 'guarded' })
  const as = (jwt: string) => bearer('guarded', jwt, { apikey: apiKey })
  assert.equal((await whoIs(as(token))).claims.user_id, 'keyed')
  const refused = await fetchDocs(as(`${token}x`))
  assert.deepEqual([refused.status, refused.body.code], [401, 'jwt_invalid'])
})

test('SQL with a JWT is refused, because it cannot act as its user', async () => {
  const { apiKey } = await t.key(['*', 'gateway.bypass_row_level_security'], { client_name: 'guarded' })
  for (const [token, status, code] of [
    [await acme.sign({ sub: 'sql' }), 400, 'sql_with_session'],
    [await acme.sign({ sub: 'sql', aud: 'other' }), 401, 'jwt_invalid'],
  ] as const) {
    const who = bearer('guarded', token, { apikey: apiKey })
    const answer = await who.post('/gateway/query', { query: 'select 1' })
    assert.deepEqual([answer.status, answer.body.code], [status, code])
  }
})

test('on a client without issuers a JWT is an invalid session', async () => {
  const answer = await fetchDocs(bearer('app', await acme.sign({ sub: 'x' })))
  assert.deepEqual([answer.status, answer.body.code], [401, 'invalid_session'])
})

test('a public route is called as the user of the JWT', async () => {
  const made = await t.admin.post('/admin/public-routes', {
    route_key: 'whoami',
    client_name: 'jwt',
    allowed_ops: ['fetch'],
    table_name: 'who',
    requires_key: false,
  })
  assert.equal(made.status, 201, made.text)
  const call = async (headers: Record<string, string>) => {
    const answer = await actor(t.url, headers).post('/public/whoami/fetch', { table_name: 'who' })
    assert.equal(answer.status, 200, answer.text)
    return JSON.parse(answer.body.data[0].claims).user_id
  }
  assert.equal(await call({ authorization: `Bearer ${await acme.sign({ sub: 'public' })}` }), 'public')
  assert.equal(await call({}), undefined)
})
