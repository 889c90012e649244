import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { setRoleByOperator } from '#auth/admin/operator.ts'
import { retireJwtKey } from '#identity/jwt/keys.ts'
import { type Actor, type Answer, type Options, testClock, testService } from '#test/harness.ts'
import { heldReply, OUTBOUND, REFUSE, startHookReceiver } from '#test/hooks.ts'

const hook = await startHookReceiver()
type Config = NonNullable<Options['config']>
const service = (auth: Config['auth'] = {}, more: Config = {}) =>
  testService({
    clock: testClock({ isStopped: true }),
    config: {
      outbound: OUTBOUND,
      ...more,
      auth: {
        ...auth,
        jwt: { header: true },
        user: { fields: { plan: { input: false } } },
        hooks: { mine: hook.settings({ on: ['token'] }) },
      },
    },
  })
const t = await service()
const { kernel } = t.service
const root = await t.signUp('Root')
await setRoleByOperator(kernel, root.id, 'admin')

const tokenOf = (who: Actor) => who.get('/api/auth/token')
const look = (who: Actor) => who.get('/api/auth/get-session')
const codeOf = ({ status, body }: Answer) => [status, body?.code]
const saysOf = ({ body }: Answer) => decodeJwt<{ readonly says: object }>(body.token).says
const change = async (userId: string, data: object) => {
  const { status, text } = await root.post('/api/auth/admin/update-user', { userId, data })
  assert.equal(status, 200, text)
}
/** Tells in a claim what the hook was told. */
const repeatUser = () =>
  hook.reply((response, { data }) => response.end(JSON.stringify({ claims: { says: data.user } })))

/** Changes that our own claims do not show. */
const CHANGES = {
  plan: { data: { plan: 'pro' }, told: { fields: { plan: 'pro' } } },
  name: { data: { name: 'Ada II' }, told: { name: 'Ada II' } },
  'verified address': { data: { emailVerified: true }, told: { email_verified: true } },
  address: { data: { email: 'other@example.com' }, told: { email: 'other@example.com' } },
}

for (const [name, { data, told }] of Object.entries(CHANGES))
  test(`after a change of the ${name} that a hook is told the next token is another one`, async () => {
    repeatUser()
    const ada = await t.signUp('Ada')
    const first = saysOf(await tokenOf(ada))
    await change(ada.id, data)
    hook.taken()
    const second = await tokenOf(ada)
    assert.deepEqual(saysOf(second), { ...first, ...told })
    assert.equal((await look(ada)).headers.get('set-auth-jwt'), second.body.token)
    assert.equal(hook.taken().length, 1)
  })

test('a change of what a hook is told, while it is asked, is told before the token is signed', async () => {
  const ada = await t.signUp('Ada')
  const held = heldReply({ claims: { says: 'before' } })
  hook.reply(held.reply)
  const asked = tokenOf(ada)
  await held.waiting(1)
  await change(ada.id, { plan: 'pro' })
  repeatUser()
  // It does not wait for the answer about the former state.
  assert.partialDeepStrictEqual(saysOf(await tokenOf(ada)), { fields: { plan: 'pro' } })
  held.letGo()
  assert.partialDeepStrictEqual(saysOf(await asked), { fields: { plan: 'pro' } })
})

test('a refusal is repeated for a second without a call, unless what the hook is told has changed', async () => {
  const ada = await t.signUp('Ada')
  for (const [reply, code] of [
    [REFUSE, [403, 'REFUSED_BY_HOOK']],
    [{ decision: 'maybe' }, [503, 'HOOK_UNAVAILABLE']],
  ] as const) {
    hook.reply(reply)
    hook.taken()
    const first = await tokenOf(ada)
    const again = await tokenOf(ada)
    assert.deepEqual([codeOf(first), codeOf(again)], [code, code])
    assert.equal(again.body.message, first.body.message)
    assert.equal(hook.taken().length, 1)
    t.advance(1_000)
    assert.deepEqual(codeOf(await tokenOf(ada)), code)
    assert.equal(hook.taken().length, 1)
    await change(ada.id, { plan: code[1] })
    assert.deepEqual(codeOf(await tokenOf(ada)), code)
    assert.equal(hook.taken().length, 1)
    t.advance(1_000)
  }
  repeatUser()
  const { body } = await tokenOf(ada)
  assert.equal((await look(ada)).headers.get('set-auth-jwt'), body.token)
})

test('tokens that a hook is asked for count for the address, and get-session goes on when it has none left', async () => {
  const few = { requests: 3, window: 600_000 }
  const limited = await service({}, { rate_limits: { enabled: true, rules: { default: few } } })
  const [ada, bob, carol] = [
    await limited.signUp('Ada'),
    await limited.signUp('Bob'),
    await limited.signUp('Carol'),
  ]
  // Both sessions are found from memory by their tokens from now on, and have not been looked up by their ids.
  for (const who of [ada, bob]) assert.equal((await who.send('HEAD', '/api/auth/get-session')).status, 200)
  hook.reply({})
  hook.taken()
  for (let more = 0; more < 5; more++) assert.equal((await tokenOf(carol)).status, 200)
  hook.reply(REFUSE)
  for (const code of [
    [403, 'REFUSED_BY_HOOK'],
    [403, 'REFUSED_BY_HOOK'],
    [429, 'TOO_MANY_REQUESTS'],
  ]) {
    limited.advance(1_000)
    assert.deepEqual(codeOf(await tokenOf(ada)), code)
  }
  assert.equal(hook.taken().length, 3)
  hook.reply({})
  const { status, headers } = await look(bob)
  assert.equal(status, 200)
  assert.ok(headers.get('set-auth-jwt'))
  assert.equal(
    (await look(await limited.signUp('Dan'))).status,
    429,
    'an address without room has no session looked up',
  )
})

test('a session that ends while the hook is asked is none where get-session requires none', async () => {
  const open = await service({ session_management: { require_authentication: false } })
  for (const reply of [{}, REFUSE]) {
    const ada = await open.signUp('Ada')
    const held = heldReply(reply)
    hook.reply(held.reply)
    const looked = look(ada)
    await held.waiting(1)
    await ada.post('/api/auth/sign-out')
    held.letGo()
    const { status, text, headers } = await looked
    assert.deepEqual([status, text, headers.get('set-auth-jwt')], [200, 'null', null])
  }
})

test('a key that ends while the hook is asked signs no token', async () => {
  const ada = await t.signUp('Ada')
  const kids = async (): Promise<readonly string[]> =>
    (await t.anon.get('/api/auth/jwks')).body.keys.map(({ kid }: { readonly kid: string }) => kid)
  hook.reply({})
  const { kid: signing = '' } = decodeProtectedHeader((await tokenOf(root)).body.token)
  const held = heldReply()
  hook.reply(held.reply)
  const asked = tokenOf(ada)
  await held.waiting(1)
  await retireJwtKey(kernel, signing)
  held.letGo()
  const { kid = '' } = decodeProtectedHeader((await asked).body.token)
  assert.deepEqual([kid === signing, (await kids()).includes(kid)], [false, true])
})

test('in the last minute of a session the hook is asked once in a second', async () => {
  const ada = await t.signUp('Ada')
  const expiresAt = new Date(kernel.now().getTime() + 30_000)
  await kernel.db.updateTable('session').set({ expiresAt }).where('userId', '=', ada.id).execute()
  await kernel.coherence.settle()
  hook.reply({})
  hook.taken()
  for (let second = 0; second < 2; second++) {
    const { body } = await tokenOf(ada)
    for (let more = 0; more < 3; more++) {
      assert.equal((await look(ada)).headers.get('set-auth-jwt'), body.token)
      assert.equal((await tokenOf(ada)).body.token, body.token)
    }
    assert.equal(decodeJwt(body.token).exp, Math.floor(expiresAt.getTime() / 1_000))
    t.advance(1_000)
  }
  assert.equal(hook.taken().length, 2)
})
