import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { banByOperator, setRoleByOperator } from '#auth/admin/operator.ts'
import { type Actor, type Answer, testClock, testService } from '#test/harness.ts'
import { heldReply, OUTBOUND, REFUSE, startHookReceiver } from '#test/hooks.ts'

const hook = await startHookReceiver()
const audience = 'https://rest.example.com'
const templates = { rest: { audience, expires_in: 600_000, claims: { plan: 'free' } } }
const t = await testService({
  clock: testClock({ isStopped: true }),
  config: {
    outbound: OUTBOUND,
    auth: {
      jwt: { header: true, templates },
      user: { fields: { plan: {} } },
      hooks: { mine: hook.settings({ on: ['token'] }) },
    },
  },
})
const { kernel } = t.service
const tokenOf = (who: Actor, query = '') => who.get(`/api/auth/token${query}`)
const headerOf = async (who: Actor) => {
  const { status, headers } = await who.get('/api/auth/get-session')
  assert.equal(status, 200)
  return headers.get('set-auth-jwt')
}
const codeOf = ({ status, body }: Answer) => [status, body?.code]
async function verified({ status, body, text }: Answer, aud = kernel.publicUrl()) {
  assert.equal(status, 200, text)
  const keys = createLocalJWKSet((await t.anon.get('/api/auth/jwks')).body)
  return (
    await jwtVerify(body.token, keys, {
      audience: aud,
      issuer: kernel.publicUrl(),
      currentDate: kernel.now(),
    })
  ).payload
}

test('the claims of a hook are in the token, which is signed once and given out again', async () => {
  const ada = await t.signUp('Ada')
  hook.taken()
  hook.reply({ claims: { tenant: 'acme', limits: { rows: 7 } } })
  const first = await tokenOf(ada)
  assert.partialDeepStrictEqual(await verified(first), {
    sub: ada.id,
    role: 'user',
    tenant: 'acme',
    limits: { rows: 7 },
  })
  hook.reply(REFUSE)
  assert.equal((await tokenOf(ada)).body.token, first.body.token)
  assert.equal(await headerOf(ada), first.body.token)
  assert.deepEqual(hook.taken(), ['before.token null'])
  const { data, text } = hook.calls.at(-1) ?? {}
  assert.deepEqual(data, {
    user: {
      id: ada.id,
      email: ada.email,
      email_verified: false,
      name: 'Ada',
      role: 'user',
      is_anonymous: false,
      fields: {},
    },
    session_id: (await verified(first)).sid,
    amr: ['pwd'],
    organization: null,
    template: null,
    audience: kernel.publicUrl(),
  })
  assert.ok(!text?.includes(ada.token))
})

test('a hook hears of the template, whose own claims stay', async () => {
  const ada = await t.signUp('Ada')
  hook.reply({ claims: { tenant: 'acme' } })
  const payload = await verified(await tokenOf(ada, '?template=rest'), audience)
  assert.partialDeepStrictEqual(payload, { plan: 'free', tenant: 'acme' })
  assert.partialDeepStrictEqual(hook.calls.at(-1)?.data, { template: 'rest', audience })
})

test('a claim that the service sets is none for a hook, all of them together are bounded, and none is rounded or broken', async () => {
  const ada = await t.signUp('Ada')
  const names = [
    'iss',
    'sub',
    'aud',
    'exp',
    'iat',
    'nbf',
    'jti',
    'sid',
    'role',
    'org',
    'org_role',
    'amr',
    'auth_time',
    'is_anonymous',
  ]
  const bodies = [
    ...[...names, 'plan', '', 'a b', 'x'.repeat(101)].map((name) => ({ [name]: 'x' })),
    { long: 'x'.repeat(2_048) },
    { long: 'ä'.repeat(1_100) },
  ].map((claims) => JSON.stringify({ claims }))
  for (const body of [
    ...bodies,
    '{"claims":{"__proto__":1}}',
    '{"claims":{"tenant":9007199254740993}}',
    '{"claims":{"limits":[1e400]}}',
    '{"claims":{"name":"\\ud800"}}',
    '{"claims":{"names":{"\\ud800":1}}}',
    '{"claims":[]}',
    '{"claims":"x"}',
    '{"fields":{}}',
  ]) {
    hook.taken()
    hook.reply((response) => response.end(body))
    assert.deepEqual(codeOf(await tokenOf(ada, '?template=rest')), [503, 'HOOK_UNAVAILABLE'], body)
    assert.equal(hook.taken().length, 1)
    t.advance(1_000)
  }
  hook.reply({ claims: { long: 'ä'.repeat(1_000) } })
  await verified(await tokenOf(ada, '?template=rest'), audience)
})

test('without the consent of a hook there is no token, and get-session goes on without its header', async () => {
  const ada = await t.signUp('Ada')
  hook.taken()
  hook.reply(REFUSE)
  const refused = await tokenOf(ada)
  assert.deepEqual([...codeOf(refused), refused.body.message], [403, 'REFUSED_BY_HOOK', 'Not with us'])
  assert.equal(await headerOf(ada), null)
  t.advance(10_000)
  for (const reply of [REFUSE, { decision: 'maybe' }]) {
    hook.reply(reply)
    assert.equal(await headerOf(ada), null)
    assert.equal(await headerOf(ada), null)
    t.advance(10_000)
  }
  assert.equal(hook.taken().length, 3, 'get-session asks once in ten seconds')
  hook.reply({})
  assert.ok(await headerOf(ada))
})

test('many requests for one token at once call the hook once', async () => {
  const ada = await t.signUp('Ada')
  hook.taken()
  const held = heldReply({ claims: { tenant: 'acme' } })
  hook.reply(held.reply)
  const answers = Array.from({ length: 20 }, () => tokenOf(ada))
  await held.waiting(1)
  held.letGo()
  const tokens = (await Promise.all(answers)).map(({ body }) => body.token)
  assert.deepEqual([new Set(tokens).size, hook.taken().length], [1, 1])
})

test('a session that ends or changes while the hook is asked gets no token of the former one', async () => {
  const ends = {
    'sign-out': (who: Actor & { id: string }) => who.post('/api/auth/sign-out'),
    ban: ({ id }: { id: string }) => banByOperator(kernel, id, { reason: null, expires: null }),
  }
  for (const [name, end] of Object.entries(ends)) {
    const ada = await t.signUp('Ada')
    const held = heldReply()
    hook.reply(held.reply)
    const asked = tokenOf(ada)
    await held.waiting(1)
    await end(ada)
    held.letGo()
    assert.deepEqual(codeOf(await asked), [401, 'UNAUTHORIZED'], name)
  }
  for (const reply of [{}, REFUSE]) {
    const ada = await t.signUp('Ada')
    const held = heldReply(reply)
    hook.reply(held.reply)
    const looked = ada.get('/api/auth/get-session')
    await held.waiting(1)
    await ada.post('/api/auth/sign-out')
    held.letGo()
    assert.deepEqual(codeOf(await looked), [401, 'UNAUTHORIZED'], 'get-session does not show it either')
  }
  const ada = await t.signUp('Ada')
  const held = heldReply({ claims: { of: 'user' } })
  hook.reply(held.reply)
  const asked = tokenOf(ada)
  await held.waiting(1)
  await setRoleByOperator(kernel, ada.id, 'auditor')
  hook.reply((response, { data }) => response.end(JSON.stringify({ claims: { of: data.user.role } })))
  held.letGo()
  assert.partialDeepStrictEqual(await verified(await asked), { role: 'auditor', of: 'auditor' })
})
