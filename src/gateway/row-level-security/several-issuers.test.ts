import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Actor, actor } from '#test/harness.ts'
import { AUDIENCE, type JwtIssuer, startJwtIssuer } from '#test/jwt-issuer.ts'
import { documentedPayloads } from '#test/openapi.ts'
import { createTenants, fetchDocs, whoIs } from '#test/tenants.ts'
import { addWebhook } from '#test/webhooks.ts'

const [acme, beta] = [await startJwtIssuer(), await startJwtIssuer()]
const trusted = (issuer: JwtIssuer, name: string) => ({
  issuer: issuer.issuer,
  audience: [AUDIENCE],
  subject_prefix: `${name}:`,
  organization_prefix: `${name}/`,
  claims_map: { organization_id: 'org' },
})
const {
  t,
  sql,
  roles,
  users,
  acme: acmeOrganization,
} = await createTenants(({ url, policies }) => {
  const client = (...issuers: object[]) => ({
    url,
    enforce_api_keys: false,
    row_level_security: { ...policies, issuers },
  })
  return {
    outbound: { allow_http: true, allow_networks: ['127.0.0.0/8'] },
    clients: {
      both: client(trusted(acme, 'a'), trusted(beta, 'b')),
      one: client(trusted(acme, 'a')),
      // A part of a UUID: the rest of one would make it whole.
      hex: client({ ...trusted(acme, 'a'), subject_prefix: '01890000' }),
    },
  }
})
await sql(`create table own_row (id int primary key generated always as identity, user_id text default claims()->>'user_id',
    organization_id text default claims()->>'organization_id');
  alter table own_row enable row level security;
  create policy own on own_row using (user_id = claims()->>'user_id' and organization_id is not distinct from claims()->>'organization_id');
  grant select, insert on own_row to ${roles.member}`)

const bearer = (name: string, token: string) =>
  actor(t.url, { 'x-service-client': name, authorization: `Bearer ${token}` })

/** Names that an issuer might choose to be somebody else. */
const { ada } = users
const CHOSEN = [
  'x', 'b:x', 'a:x', ':x', 'a:b:x', `{${ada.id}}`, ada.id, `a:${ada.id}`, 'jwt:a:x', 'admin-key', 'cli', 'key:1', "' or true --", 'null',
] // biome-ignore format: one line reads better

test('no issuer can name a user or an organization of another one, nor of this service', async () => {
  const seen = new Map<string, string>([
    [`user ${ada.id}`, 'ada'],
    [`organization ${acmeOrganization}`, 'acme'],
  ])
  for (const issuer of [acme, beta])
    for (const chosen of CHOSEN) {
      const token = await issuer.sign({ sub: chosen, org: chosen })
      const { claims } = await whoIs(bearer('both', token))
      for (const name of [`user ${claims.user_id}`, `organization ${claims.organization_id}`]) {
        assert.equal(seen.get(name), undefined, name)
        seen.set(name, `${issuer.issuer} ${chosen}`)
      }
      assert.ok(claims.user_id.startsWith(issuer === acme ? 'a:' : 'b:'))
      assert.ok(claims.organization_id.startsWith(issuer === acme ? 'a/' : 'b/'))
    }
})

test('each of them has rows of its own', async () => {
  const callers: Actor[] = [bearer('both', ada.token)]
  for (const issuer of [acme, beta])
    for (const sub of CHOSEN) callers.push(bearer('both', await issuer.sign({ sub, org: sub })))
  const rowsOf = async (who: Actor) => {
    const answer = await who.post('/gateway/fetch', { table_name: 'own_row' })
    assert.equal(answer.status, 200, answer.text)
    return answer.body.data
  }
  for (const who of callers) {
    const body = { table_name: 'own_row', insert_body: {} }
    assert.equal((await who.send('PUT', '/gateway/insert', { body })).status, 200)
  }
  for (const who of callers) assert.equal((await rowsOf(who)).length, 1)
})

test('a token that one issuer has signed in the name of another is refused', async () => {
  for (const [signs, named] of [
    [acme, beta],
    [beta, acme],
  ] as const) {
    const answer = await fetchDocs(bearer('both', await signs.sign({ sub: 'x', iss: named.issuer })))
    assert.deepEqual([answer.status, answer.body.code], [401, 'jwt_invalid'])
  }
})

test('an issuer of another client is unknown, also for a token that was verified there', async () => {
  const token = await beta.sign({ sub: 'x' })
  assert.equal((await fetchDocs(bearer('both', token))).status, 200)
  const answer = await fetchDocs(bearer('one', token))
  assert.deepEqual([answer.status, answer.body.code], [401, 'jwt_issuer_unknown'])
})

test('a prefix that the subject completes to a UUID is refused', async () => {
  const rest = `-89ab-7cde-8f01-${'2'.repeat(12)}`
  const answer = await fetchDocs(bearer('hex', await acme.sign({ sub: rest })))
  assert.deepEqual([answer.status, answer.body.code], [401, 'jwt_invalid'])
  assert.equal((await whoIs(bearer('hex', await acme.sign({ sub: 'y' })))).claims.user_id, '01890000y')
})

test('an idempotency key is that of one user', async () => {
  const operations = [
    { id: 'a', kind: 'insert', payload: { table_name: 'own_row', insert_body: {}, columns: ['user_id'] } },
  ]
  const run = async (token: string) => {
    const headers = { 'idempotency-key': 'the same' }
    const answer = await bearer('both', token).post('/gateway/transaction', { operations }, { headers })
    assert.equal(answer.status, 200, answer.text)
    return JSON.stringify(answer.body.results)
  }
  const [first, other] = [await acme.sign({ sub: 'idem' }), await beta.sign({ sub: 'idem' })]
  const done = await run(first)
  assert.match(done, /"a:idem"/)
  assert.match(await run(other), /"b:idem"/)
  // A later token of the same user replays.
  assert.equal(await run(await acme.sign({ sub: 'idem', jti: 'later' })), done)
})

test('events tell that the actor is the user of a JWT', async () => {
  const { kernel } = t.service
  await addWebhook(kernel, { url: 'https://hooks.example.com/in', routeKey: '*', clientName: 'both' })
  const isDocumented = documentedPayloads((await t.anon.get('/openapi.json')).body)
  await kernel.db.deleteFrom('webhookEvent').execute()
  for (const sub of ['actor', ada.id]) {
    const body = { table_name: 'own_row', insert_body: {} }
    await bearer('both', await acme.sign({ sub })).send('PUT', '/gateway/insert', { body })
    const [event] = await kernel.db.deleteFrom('webhookEvent').returning('body').execute()
    const payload = JSON.parse(event?.body ?? '{}')
    isDocumented(payload)
    assert.deepEqual(payload.data.actor, { kind: 'jwt', id: `a:${sub}` })
  }
})
