import assert from 'node:assert/strict'
import { test } from 'node:test'
import { confirm, endpointOf, linkIn, PASSWORD, testService } from '#test/harness.ts'
import { proveAddress } from '#test/proven-address.ts'

const t = await testService()

const verified = async (user: { get: typeof t.anon.get }) =>
  (await user.get('/api/auth/get-session')).body?.user?.emailVerified

test('a verification link proves the address once, and the session that opens it stays', async () => {
  const ada = await t.signUp('Ada')
  assert.deepEqual(await t.mails(), [], 'no mail was asked for')
  assert.equal(
    (await t.anon.post('/api/auth/send-verification-email', { email: ada.email })).body.status,
    true,
  )
  const [mail = '', ...others] = await t.mails()
  assert.deepEqual(others, [])
  const link = endpointOf(linkIn(mail))

  const followed = await ada.get(link)
  assert.equal(followed.status, 200, followed.text)
  assert.deepEqual([followed.body.status, followed.body.user.emailVerified], [true, true])
  assert.equal(await verified(ada), true)
  const again = await ada.get(link)
  assert.deepEqual([again.status, again.body.code], [401, 'INVALID_TOKEN'])
})

test('an unknown and a verified address get the same answer and no mail', async () => {
  const answer = await t.anon.post('/api/auth/send-verification-email', { email: 'nobody@example.com' })
  assert.deepEqual([answer.status, answer.body], [200, { status: true }])
  assert.deepEqual(await t.mails(), [])
})

test('a link redirects to its callback, with the error after a failure', async () => {
  const ada = await t.signUp('Ada')
  await t.anon.post('/api/auth/send-verification-email', {
    email: ada.email,
    callbackURL: '/welcome?from=mail',
  })
  const [mail = ''] = await t.mails()
  const link = endpointOf(linkIn(mail))
  const good = await ada.get(link)
  assert.deepEqual([good.status, good.headers.get('location')], [302, '/welcome?from=mail'])
  const used = await ada.get(link)
  assert.deepEqual(
    [used.status, used.headers.get('location')],
    [302, '/welcome?from=mail&error=INVALID_TOKEN'],
  )
})

test('a link ends after an hour', async () => {
  const ada = await t.signUp('Ada')
  await t.anon.post('/api/auth/send-verification-email', { email: ada.email })
  const [mail = ''] = await t.mails()
  t.advance(3_600_001)
  const late = await ada.get(endpointOf(linkIn(mail)))
  assert.deepEqual([late.status, late.body.code], [401, 'TOKEN_EXPIRED'])
  assert.equal(await verified(ada), false)
})

test('of fifty concurrent requests with one verification token one succeeds', async () => {
  const ada = await t.signUp('Ada')
  await t.anon.post('/api/auth/send-verification-email', { email: ada.email })
  const [mail = ''] = await t.mails()
  const answers = await Promise.all(Array.from({ length: 50 }, () => ada.get(endpointOf(linkIn(mail)))))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [
    200,
    ...Array.from({ length: 49 }, () => 401),
  ])
})

test('following the link changes the address, and sessions stay; an unproven old one gets no notice', async () => {
  const ada = await t.signUp('Ada')
  const newEmail = `new-${ada.email}`
  const asked = await ada.post('/api/auth/change-email', { newEmail: newEmail.toUpperCase() })
  assert.equal(asked.body.status, true)
  const mails = await t.mails()
  const toNew = mails.find((mail) => mail.includes(`To: ${newEmail}`)) ?? ''
  assert.equal(mails.length, 1)

  assert.equal((await ada.get('/api/auth/get-session')).body.user.email, ada.email)
  assert.equal((await confirm(ada, linkIn(toNew))).status, 200)
  const { user } = (await ada.get('/api/auth/get-session')).body
  assert.deepEqual([user.email, user.emailVerified], [newEmail, true])
  const signIn = (email: string) => t.anon.post('/api/auth/sign-in/email', { email, password: PASSWORD })
  assert.deepEqual([(await signIn(newEmail)).status, (await signIn(ada.email)).status], [200, 401])
})

/** A user whose address is proven. */
const provenUser = async (name: string) => proveAddress(t, await t.signUp(name))

test('a proven address has to allow the change first; only the link to the new one changes it', async () => {
  const ada = await provenUser('Ada')
  const newEmail = `late-${ada.email}`
  await ada.post('/api/auth/change-email', { newEmail, callbackURL: '/settings' })
  const [allow = '', ...none] = await t.mails()
  assert.deepEqual(none, [], 'no mail to the new address yet')
  assert.match(allow, new RegExp(`To: ${ada.email}`))
  const allowed = await confirm(t.anon, linkIn(allow))
  assert.deepEqual([allowed.status, allowed.headers.get('location')], [303, '/settings'])

  const mails = await t.mails()
  const toNew = mails.find((mail) => mail.includes(`To: ${newEmail}`)) ?? ''
  assert.ok(
    mails.some((mail) => mail.includes(`To: ${ada.email}`) && !mail.includes('http')),
    'a notice',
  )
  assert.equal((await ada.get('/api/auth/get-session')).body.user.email, ada.email)
  await confirm(ada, linkIn(toNew))
  assert.equal((await ada.get('/api/auth/get-session')).body.user.email, newEmail)
})

test('the password makes the link to a proven address unnecessary; a wrong one sends nothing', async () => {
  const ada = await provenUser('Ada')
  const newEmail = `quick-${ada.email}`
  const wrong = await ada.post('/api/auth/change-email', { newEmail, password: 'wrong password' })
  assert.deepEqual([wrong.status, wrong.body.code], [400, 'INVALID_PASSWORD'])
  assert.deepEqual(await t.mails(), [])
  await ada.post('/api/auth/change-email', { newEmail, password: PASSWORD })
  const mails = await t.mails()
  const toNew = mails.find((mail) => mail.includes(`To: ${newEmail}`)) ?? ''
  assert.equal(mails.length, 2)
  assert.equal((await confirm(ada, linkIn(toNew))).status, 200)
  assert.equal((await ada.get('/api/auth/get-session')).body.user.email, newEmail)
})

test('a newer change of address replaces an older one at both steps', async () => {
  const ada = await provenUser('Ada')
  const allowTo = async (newEmail: string) => {
    await ada.post('/api/auth/change-email', { newEmail })
    return linkIn((await t.mails())[0] ?? '')
  }
  const first = await allowTo(`one-${ada.email}`)
  const second = await allowTo(`two-${ada.email}`)
  assert.equal((await t.anon.get(endpointOf(first))).body.code, 'INVALID_TOKEN')
  await confirm(t.anon, second)
  const toSecond = (await t.mails()).find((mail) => mail.includes(`To: two-`)) ?? ''
  await allowTo(`three-${ada.email}`)
  assert.equal((await t.anon.get(endpointOf(linkIn(toSecond)))).body.code, 'INVALID_TOKEN')
  assert.equal((await ada.get('/api/auth/get-session')).body.user.email, ada.email)
})

test('a taken address looks like a free one, and its owner gets nothing', async () => {
  const ada = await t.signUp('Ada')
  const bob = await t.signUp('Bob')
  const free = await ada.post('/api/auth/change-email', { newEmail: 'free@example.com' })
  await t.mails()
  const taken = await ada.post('/api/auth/change-email', { newEmail: bob.email })
  assert.deepEqual([taken.status, taken.body], [free.status, free.body])
  assert.ok((await t.mails()).every((mail) => !mail.includes(`To: ${bob.email}`)))
  const same = await ada.post('/api/auth/change-email', { newEmail: ada.email })
  assert.deepEqual([same.status, same.body.code], [400, 'EMAIL_IS_THE_SAME'])
})

test('a taken address costs as much work as a free one, so that the time of the answer does not differ', async () => {
  const bob = await t.signUp('Bob')
  const { db } = t.service.kernel
  const workFor = async (newEmail: string) => {
    const ada = await t.signUp('Ada')
    await t.mails()
    assert.equal((await ada.post('/api/auth/change-email', { newEmail })).status, 200)
    const queued = await t.service.kernel.jobs.depths()
    const tickets = await db
      .selectFrom('verification')
      .select('purpose')
      .where('userId', '=', ada.id)
      .execute()
    return { queued, tickets, sent: (await t.mails()).length }
  }
  const free = await workFor('another-free@example.com')
  assert.equal(free.sent, 1)
  assert.deepEqual(await workFor(bob.email), { ...free, sent: 0 })
})
