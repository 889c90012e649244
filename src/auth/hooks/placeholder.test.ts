import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signInAnonymously } from '#test/anonymous.ts'
import { createAuthenticator } from '#test/authenticator.ts'
import { actor, testService } from '#test/harness.ts'
import { OUTBOUND, startHookReceiver } from '#test/hooks.ts'
import { ceremoniesOf } from '#test/passkeys.ts'

const hook = await startHookReceiver()
const t = await testService({
  config: { outbound: OUTBOUND, auth: { anonymous: { enabled: true }, hooks: { mine: hook.settings() } } },
})

test('a hook hears of no address of a user who has none, also after a passkey has made the user known', async () => {
  const passkeys = ceremoniesOf(t)
  const [anna, authenticator] = [await signInAnonymously(t), createAuthenticator()]
  await anna.get('/api/auth/token')
  assert.equal((await passkeys.register(anna, authenticator)).status, 200)
  const { body } = await passkeys.signIn(authenticator)
  const known = actor(t.url, { authorization: `Bearer ${body.session.token}` })
  assert.equal((await known.get('/api/auth/token')).status, 200)
  assert.deepEqual(hook.taken(), [
    ...['before.sign_up anonymous', 'before.sign_in anonymous', 'before.token null'],
    ...['before.sign_up passkey', 'before.sign_in passkey', 'before.sign_in verified passkey'],
    'before.token null',
  ])
  assert.deepEqual(
    hook.calls.map(({ data }) => (data.user ?? data).email),
    hook.calls.map(() => null),
  )
  assert.deepEqual(hook.calls.at(-1)?.data.user.is_anonymous, false)
  assert.ok(!hook.calls.some(({ text }) => text.includes('anonymous.invalid')))
})
