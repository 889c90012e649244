import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Actor, PASSWORD, testService, type User } from '#test/harness.ts'
import { proveAddress } from '#test/proven-address.ts'
import { enrolTotp, pendingSignIn } from '#test/second-factor.ts'

const MANY = { requests: 1_000_000 }
const t = await testService({
  config: {
    rate_limits: {
      enabled: true,
      rules: {
        ...{ sign_in: MANY, sign_up: MANY, two_factor: MANY, mail: MANY, default: MANY },
        mail_recipient: { requests: 3 },
      },
    },
  },
})
const AUTH = '/api/auth'
const HEADER = 'x-service-known-device'
const DAY = 86_400_000

const on = (device: string): Actor => ({
  ...t.anon,
  post: (path, body) => t.anon.post(path, body, { headers: { [HEADER]: device } }),
})
async function deviceOf(user: User): Promise<string> {
  const answer = await t.anon.post(`${AUTH}/sign-in/email`, { email: user.email, password: PASSWORD })
  return answer.headers.get(HEADER) ?? ''
}

/** Asks five times at once for a reset; returns the number of mails to the address. Every answer is the same. */
async function resets(by: Actor, email: string): Promise<number> {
  await t.mails()
  const asked = Array.from({ length: 5 }, () => by.post(`${AUTH}/forget-password`, { email }))
  for (const { status, body } of await Promise.all(asked))
    assert.deepEqual([status, body.status], [200, true])
  return (await t.mails()).filter((mail) => mail.includes(`To: ${email}`)).length
}

test('strangers do not use up the recovery mails of a known device or a session, which have an end too', async () => {
  const ada = await proveAddress(t, await t.signUp('Ada'))
  const device = await deviceOf(ada)
  assert.equal(await resets(t.anon, ada.email), 3)
  assert.equal(await resets(t.anon, ada.email), 0)
  assert.equal(await resets(on(device), ada.email), 3)
  assert.equal(await resets(on(device), ada.email), 0)
  assert.equal(await resets(ada, ada.email), 3)
  assert.equal(await resets(on(await deviceOf(ada)), ada.email), 0, 'three times as many in all')
})

test('a device and a session have mails of their own for their own proven address only', async () => {
  const [ada, bob] = [
    await proveAddress(t, await t.signUp('Ada')),
    await proveAddress(t, await t.signUp('Bob')),
  ]
  const device = await deviceOf(ada)
  assert.equal(await resets(t.anon, bob.email), 3)
  for (const by of [ada, on(device), on('made up')]) assert.equal(await resets(by, bob.email), 0)
  assert.equal(await resets(on(device), 'nobody@example.com'), 0)
  const eve = await t.signUp('Eve')
  assert.equal(await resets(t.anon, eve.email), 3)
  for (const by of [eve, on(await deviceOf(eve))]) assert.equal(await resets(by, eve.email), 0, 'not proven')
})

test('links that a session asks for arrive, whatever strangers have asked for', async () => {
  const ada = await proveAddress(t, await t.signUp('Ada'))
  await resets(t.anon, ada.email)
  assert.equal((await ada.post(`${AUTH}/change-email`, { newEmail: `new-${ada.email}` })).status, 200)
  t.advance(DAY + 1_000)
  await resets(t.anon, ada.email)
  assert.equal((await ada.post(`${AUTH}/delete-user`)).status, 200)
  assert.equal((await t.mails()).filter((mail) => /Delete your account/.test(mail)).length, 1)
})

test('codes by mail that strangers with the password ask for are not those of a known device', async () => {
  const ada = await enrolTotp(t, await proveAddress(t, await t.signUp('Ada')))
  const pending = async () => (await pendingSignIn(t.anon, ada.email)).body.token
  const codes = async (by: Actor) => {
    await t.mails()
    for (let asked = 0; asked < 5; asked++)
      assert.equal((await by.post(`${AUTH}/two-factor/send-otp`, { token: await pending() })).status, 200)
    return (await t.mails()).filter((mail) => /your code is/.test(mail)).length
  }
  const verified = await t.anon.post(`${AUTH}/two-factor/verify-backup-code`, {
    ...{ token: await pending(), code: ada.backupCodes[0] },
  })
  const device = verified.headers.get(HEADER) ?? ''
  assert.equal(await codes(t.anon), 3)
  assert.equal(await codes(on(device)), 3)
})
