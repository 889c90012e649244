import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAuthenticator } from '#test/authenticator.ts'
import { type Actor, linkIn, PASSWORD, testClock, testService, type User } from '#test/harness.ts'
import { createPerson } from '#test/organizations.ts'
import { proveAddress } from '#test/proven-address.ts'
import { enrolTotp, signedInAs } from '#test/second-factor.ts'

const MANY = { requests: 1_000_000 }
const t = await testService({
  clock: testClock({ isStopped: true }),
  config: {
    rate_limits: {
      enabled: true,
      rules: {
        ...{ sign_in: MANY, sign_up: MANY, two_factor: MANY, mail: MANY, default: MANY },
        mail_recipient: { requests: 4 },
      },
    },
  },
})
const { kernel } = t.service
const AUTH = '/api/auth'

async function proven(name: string): Promise<User> {
  const user = await proveAddress(t, await t.signUp(name))
  await t.mails()
  return user
}

const change = (user: User, newPassword: string, currentPassword = PASSWORD) =>
  user.post(`${AUTH}/change-password`, { currentPassword, newPassword })
const forget = (email: string, by: Actor = t.anon) => by.post(`${AUTH}/forget-password`, { email })
const subjects = (mails: readonly string[]) =>
  mails.map((mail) => /^Subject: (.*)$/m.exec(mail)?.[1]?.trim() ?? '')

async function addPasskey(user: User) {
  const { body: options } = await user.get(`${AUTH}/passkey/generate-register-options`)
  const response = createAuthenticator().create(options, kernel.publicUrl())
  const body = { response, challengeId: options.challengeId }
  const { status, text } = await user.post(`${AUTH}/passkey/verify-registration`, body)
  assert.equal(status, 200, text)
}

/** Everything that a session can change, with the password. */
async function changeEverything(user: User): Promise<void> {
  await change(user, PASSWORD)
  await addPasskey(user)
  await user.post(`${AUTH}/change-email`, { newEmail: `new-${user.email}`, password: PASSWORD })
  await enrolTotp(t, user)
}

test('an unproven address gets no notices, however often its account changes', async () => {
  const ada = await t.signUp('Ada')
  await t.mails()
  for (let round = 0; round < 3; round++) await change(ada, PASSWORD)
  await changeEverything(ada)
  const mails = (await t.mails()).filter((mail) => mail.includes(`To: ${ada.email}`))
  assert.deepEqual(subjects(mails), [])
})

test('a proven address gets a notice of each change', async () => {
  const ada = await proven('Ada')
  await changeEverything(ada)
  const mails = (await t.mails()).filter((mail) => mail.includes(`To: ${ada.email}`))
  assert.deepEqual(subjects(mails).sort(), [
    'A passkey was added to your account',
    'The security of your account was changed',
    'Your email address is about to change',
    'Your password was changed',
  ])
})

test('the reset that proves an address tells of the new password', async () => {
  const ada = await t.signUp('Ada')
  await t.mails()
  await forget(ada.email)
  const token = linkIn((await t.mails()).at(-1) ?? '').split('/').at(-1) // biome-ignore format: one line reads better
  await t.anon.post(`${AUTH}/reset-password`, { token, newPassword: 'another good password' })
  assert.deepEqual(subjects(await t.mails()), ['Your password was changed'])
})

test('notices have an end, and a stranger who asks for mails does not silence them', async () => {
  const ada = await proven('Ada')
  for (let asked = 0; asked < 20; asked++) await forget(ada.email)
  assert.deepEqual([...new Set(subjects(await t.mails()))], ['Reset your password'])
  for (let round = 0; round < 20; round++) await change(ada, PASSWORD)
  assert.deepEqual(subjects(await t.mails()), Array(4).fill('Your password was changed'))
})

test('who holds the password does not silence them with the mails of other sessions', async () => {
  const ada = await proven('Ada')
  for (const by of [t.anon, await signedInAs(t, ada.email), await signedInAs(t, ada.email)])
    for (let asked = 0; asked < 5; asked++) await forget(ada.email, by)
  assert.deepEqual(subjects(await t.mails()), Array(12).fill('Reset your password'))
  await change(ada, PASSWORD)
  assert.deepEqual(subjects(await t.mails()), ['Your password was changed'])
  await forget(ada.email, await signedInAs(t, ada.email))
  assert.deepEqual(await t.mails(), [], 'notices count, too')
})

test('an admin does not silence them with changes that are refused', async () => {
  const [ada, bob, root] = [
    await proven('Ada'),
    await proven('Bob'),
    await createPerson(t, { role: 'admin' }),
  ]
  const give = (email: string) =>
    root.post(`${AUTH}/admin/update-user`, { userId: ada.id, data: { email } }).then(({ status }) => status)
  for (let tries = 0; tries < 5; tries++) assert.equal(await give(bob.email), 409)
  assert.deepEqual(await t.mails(), [])
  assert.equal(await give(`new-${ada.email}`), 200)
  assert.deepEqual(subjects(await t.mails()), ['Your email address was changed'])
})
