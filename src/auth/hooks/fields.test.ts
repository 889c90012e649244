import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import pg from 'pg'
import { settleUniqueFields } from '#identity/unique-fields.ts'
import { signInAnonymously } from '#test/anonymous.ts'
import { createAuthenticator } from '#test/authenticator.ts'
import { type Answer, PASSWORD, testService } from '#test/harness.ts'
import { OUTBOUND, startHookReceiver } from '#test/hooks.ts'
import { ceremoniesOf } from '#test/passkeys.ts'

const [hook, second] = [await startHookReceiver(), await startHookReceiver()]
const fields = {
  plan: { input: false, values: ['free', 'paid'] },
  seats: { type: 'number', input: false },
  country: { required: true, default: 'DE' },
  badge: { unique: true },
  note: { returned: false },
} as const
const t = await testService({
  config: {
    outbound: OUTBOUND,
    auth: {
      anonymous: { enabled: true },
      user: { fields },
      hooks: { one: hook.settings({ on: ['sign_up'] }), two: second.settings({ on: ['sign_up'] }) },
    },
  },
})
const { db } = t.service.kernel
await settleUniqueFields(db, t.config)
let count = 0
const signUp = (more: object = {}) =>
  t.anon.post('/api/auth/sign-up/email', {
    name: 'Ada',
    email: `ada-${++count}@example.com`,
    password: PASSWORD,
    ...more,
  })
const codeOf = ({ status, body }: Answer) => [status, body?.code]

test('hooks add fields to a new user, also those that users cannot set; of one that several add, the last counts', async () => {
  hook.reply({ fields: { plan: 'free', seats: 3, note: 'x' } })
  second.reply({ fields: { plan: 'paid', note: null } })
  const { status, body } = await signUp({ country: 'FR' })
  assert.equal(status, 200)
  const { plan, seats, country } = body.user
  assert.deepEqual({ plan, seats, country }, { plan: 'paid', seats: 3, country: 'FR' })
  const stored = await db
    .selectFrom('user')
    .select('fields')
    .where('id', '=', body.user.id)
    .executeTakeFirst()
  assert.deepEqual(stored?.fields, { plan: 'paid', seats: 3, country: 'FR' })
  assert.partialDeepStrictEqual(hook.calls.at(-1)?.data, {
    email: `ada-${count}@example.com`,
    email_verified: false,
    name: 'Ada',
    username: null,
    fields: { country: 'FR' },
    method: 'email',
    user_id: null,
    ip_address: '127.0.0.1',
  })
  assert.ok(!hook.calls.at(-1)?.text.includes(PASSWORD))
})

test('fields that do not fit are a failure of the hook, and nobody is added', async () => {
  second.reply({})
  const users = await db.selectFrom('user').select('id').execute()
  const wrong = [
    { plan: 'gold' },
    { seats: 'three' },
    { country: null },
    { colour: 'red' },
    { role: 'admin' },
    { email: 'eve@example.com' },
    { note: 'x'.repeat(5_000) },
  ]
  for (const given of wrong) {
    hook.reply({ fields: given })
    assert.deepEqual(codeOf(await signUp()), [503, 'HOOK_UNAVAILABLE'], JSON.stringify(given))
  }
  for (const body of ['{"fields":[]}', '{"fields":{"__proto__":"x"}}', '{"fields":{"constructor":"x"}}']) {
    hook.reply((response) => response.end(body))
    assert.deepEqual(codeOf(await signUp()), [503, 'HOOK_UNAVAILABLE'], body)
  }
  assert.deepEqual(await db.selectFrom('user').select('id').execute(), users)
})

test('a value that another user has refuses the sign-up as one that was sent', async () => {
  hook.reply({ fields: { badge: 'first' } })
  assert.equal((await signUp()).status, 200)
  assert.deepEqual(codeOf(await signUp()), [409, 'FIELD_VALUE_IS_ALREADY_TAKEN'])
})

test('a hook hears of no sign-up that fails by itself', async () => {
  hook.reply({})
  const email = `ada-${count + 1}@example.com`
  assert.equal((await signUp()).status, 200)
  hook.taken()
  assert.deepEqual(codeOf(await signUp({ email })), [409, 'USER_ALREADY_EXISTS'])
  assert.deepEqual(codeOf(await signUp({ password: 'short' })), [400, 'PASSWORD_TOO_SHORT'])
  assert.deepEqual(hook.taken(), [])
})

test('an anonymous user who becomes a known one gets the fields too, and the hook is told the id', async () => {
  hook.reply({})
  const anna = await signInAnonymously(t)
  assert.partialDeepStrictEqual(hook.calls.at(-1)?.data, { email: null, method: 'anonymous', user_id: null })
  hook.reply({ fields: { plan: 'paid' } })
  const { status } = await ceremoniesOf(t).register(anna, createAuthenticator())
  assert.equal(status, 200)
  assert.partialDeepStrictEqual(hook.calls.at(-1)?.data, { method: 'passkey', user_id: anna.id })
  const known = await db
    .selectFrom('user')
    .select(['fields', 'isAnonymous'])
    .where('id', '=', anna.id)
    .executeTakeFirst()
  assert.partialDeepStrictEqual(known, { isAnonymous: false, fields: { plan: 'paid', country: 'DE' } })
})

test('an address with an account and one without call the hook alike, and get the same answers', async () => {
  const hiding = await testService({
    controlUrl: t.controlUrl,
    config: {
      outbound: OUTBOUND,
      auth: {
        hide_registered_emails: true,
        email_password: { require_email_verification: true },
        user: { fields },
        hooks: { one: hook.settings({ on: ['sign_up'] }) },
      },
    },
  })
  await db.updateTable('user').set({ emailVerified: true, emailProvenAt: new Date() }).execute()
  const sent = mock.method(pg.Client.prototype, 'query')
  // A process sends these by itself, again and again, or until it has read the webhooks.
  const isCounted = ({ arguments: [text] }: { readonly arguments: readonly unknown[] }) => {
    const words = JSON.stringify(text)
    if (/process_lease|from service\.webhook where/.test(words)) return false
    // The first one of a connection goes by itself (joined-begin.ts).
    if (/"text":"begin"/.test(words)) return false
    return !/service_jobs/.test(words) || /INSERT INTO service_jobs\.job/i.test(words)
  }
  const seen = async (email: string, reply: object) => {
    hook.reply(reply)
    const before = hook.calls.length
    sent.mock.resetCalls()
    const answer = await hiding.anon.post('/api/auth/sign-up/email', {
      name: 'Eve',
      email,
      password: PASSWORD,
    })
    const told = hook.calls.slice(before).map(({ type, data }) => ({ type, data: { ...data, email: '' } }))
    const statements = sent.mock.calls.filter(isCounted).length
    return {
      statements,
      code: codeOf(answer),
      message: answer.body.message,
      told,
      names: [...answer.headers.keys()],
    }
  }
  for (const [index, reply] of [
    { decision: 'refuse', message: 'No' },
    { fields: { colour: 1 } },
    {},
    { fields: { badge: 'first' } },
  ].entries()) {
    const taken = await seen('ada-1@example.com', reply)
    assert.deepEqual(taken, await seen(`free-${index}@example.com`, reply))
    assert.equal(taken.told.length, 1)
  }
  sent.mock.restore()
})
