import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settleUniqueFields } from '#identity/unique-fields.ts'
import { signInAnonymously } from '#test/anonymous.ts'
import { type Actor, type Answer, actor, confirm, linkIn, testService, type User } from '#test/harness.ts'
import { codeIn } from '#test/mailed-codes.ts'
import { SESSION_COOKIE } from '#test/second-factor.ts'

const fields = { company: { required: true }, phone: { unique: true } }
const t = await testService({
  config: {
    auth: {
      anonymous: { enabled: true },
      magic_link: { enabled: true },
      email_otp: { enabled: true },
      user: { fields },
    },
  },
})
const { db } = t.service.kernel
await settleUniqueFields(db, t.config)
const AUTH = '/api/auth'

let count = 0
const newAddress = () => `ada-${++count}@example.com`
const me = async (who: Actor) => (await who.get(`${AUTH}/get-session`)).body?.user
const renewed = ({ headers }: Answer): Actor =>
  actor(t.url, { authorization: `Bearer ${headers.get('set-auth-token')}` })
const inBrowser = ({ token }: User): Actor => actor(t.url, { cookie: `${SESSION_COOKIE}=${token}` })
const usersWith = (email: string) => db.selectFrom('user').select('id').where('email', '=', email).execute()

/** The mail that signs in, asked for by this actor. */
async function askedBy(who: Actor, email: string, more: object = { company: 'ACME' }): Promise<string> {
  await t.mails()
  const asked = await who.post(`${AUTH}/sign-in/magic-link`, { email, ...more })
  assert.equal(asked.status, 200, asked.text)
  const mail = (await t.mails()).findLast((one) => one.includes(`To: ${email}`))
  assert.ok(mail)
  return mail
}
const tokenIn = (mail: string) => new URL(linkIn(mail), t.url).searchParams.get('token') ?? ''
const open = (who: Actor, mail: string) => who.get(`${AUTH}/magic-link/verify?token=${tokenIn(mail)}`)
const type = (who: Actor, email: string, mail: string, more = {}) =>
  who.post(`${AUTH}/sign-in/email-otp`, { email, otp: codeIn(mail), ...more })

/** Ways to follow the mail in a session. */
const WAYS: Readonly<Record<string, (who: User, email: string, mail: string) => Promise<Answer>>> = {
  'the link': (who, _email, mail) => open(who, mail),
  'the button of its page': (who, _email, mail) => confirm(inBrowser(who), linkIn(mail)),
  'the code': (who, email, mail) => type(who, email, mail),
}

for (const [by, follow] of Object.entries(WAYS))
  test(`a sign-in by mail that was asked for in the session gives its user the address and keeps the id, by ${by}`, async () => {
    const [who, email] = [await signInAnonymously(t), newAddress()]
    const mail = await askedBy(who, email, { name: 'Ada', company: 'ACME', phone: `${count}` })
    assert.equal((await me(who)).isAnonymous, true)
    const done = await follow(who, email, mail)
    const user = {
      ...{ id: who.id, email, emailVerified: true, isAnonymous: false, name: 'Ada' },
      ...{ company: 'ACME', phone: `${count}` },
    }
    assert.partialDeepStrictEqual(await me(renewed(done)), user)
    assert.equal(await me(who), undefined, 'a new session is in the place of the one that asked')
    assert.deepEqual(await usersWith(email), [{ id: who.id }])
    const trail = await db
      .selectFrom('auditEvent')
      .select(['action', 'actorId', 'details'])
      .where('targetId', '=', who.id)
      .where('action', '=', 'user.upgraded')
      .execute()
    const told = { action: 'user.upgraded', actorId: who.id, details: { by: 'email', sessionsEnded: 1 } }
    assert.deepEqual(trail, [told])
    assert.equal((await open(who, mail)).status, 401, 'link and code are used up')
    const later = await open(t.anon, await askedBy(t.anon, email))
    assert.equal(later.body.user.id, who.id)
  })

test('a mail that another has asked for does not give the anonymous user to its recipient', async () => {
  const stranger = await signInAnonymously(t)
  for (const ask of [t.anon, stranger])
    for (const follow of Object.values(WAYS)) {
      const [victim, email] = [await signInAnonymously(t), newAddress()]
      const entered = renewed(await follow(victim, email, await askedBy(ask, email)))
      assert.partialDeepStrictEqual(await me(entered), { email, isAnonymous: false })
      assert.notEqual((await me(entered)).id, victim.id)
      assert.partialDeepStrictEqual(await me(victim), { id: victim.id, isAnonymous: true })
    }
  assert.partialDeepStrictEqual(await me(stranger), { id: stranger.id, isAnonymous: true })
})

test('the mail signs in as another user where the session is not: on another device, or when it has ended', async () => {
  const [who, email] = [await signInAnonymously(t), newAddress()]
  const elsewhere = await open(t.anon, await askedBy(who, email))
  assert.notEqual(elsewhere.body.user.id, who.id)
  assert.partialDeepStrictEqual(await me(who), { id: who.id, isAnonymous: true })
  const next = newAddress()
  const mail = await askedBy(who, next)
  await who.post(`${AUTH}/sign-out`)
  const entered = await open(who, mail)
  assert.notEqual(entered.body.user.id, who.id)
})

test('an address that has an account signs in as its user, and the anonymous user stays', async () => {
  const email = newAddress()
  const owner = (await open(t.anon, await askedBy(t.anon, email))).body.user
  for (const follow of Object.values(WAYS)) {
    const who = await signInAnonymously(t)
    const entered = await follow(who, email, await askedBy(who, email))
    assert.partialDeepStrictEqual(await me(renewed(entered)), { id: owner.id, email })
    assert.partialDeepStrictEqual(await me(who), { id: who.id, isAnonymous: true })
  }
})

test('the fields of a known user are asked for, and what is refused leaves the user and the mail as they were', async () => {
  await open(t.anon, await askedBy(t.anon, newAddress(), { company: 'B', phone: 'taken' }))
  const [who, email] = [await signInAnonymously(t), newAddress()]
  const mail = await askedBy(who, email, {})
  const refused = await type(who, email, mail)
  assert.deepEqual([refused.status, refused.body.code], [400, 'MISSING_FIELD'])
  const conflict = await type(who, email, mail, { company: 'A', phone: 'taken' })
  assert.deepEqual([conflict.status, conflict.body.code], [409, 'FIELD_VALUE_IS_ALREADY_TAKEN'])
  assert.partialDeepStrictEqual(await me(who), { id: who.id, isAnonymous: true })
  await who.post(`${AUTH}/update-user`, { company: 'A', phone: 'own', name: 'Own' })
  const done = await type(who, email, mail)
  assert.partialDeepStrictEqual(await me(renewed(done)), {
    id: who.id,
    company: 'A',
    phone: 'own',
    name: 'Own',
  })
})

test('a field that the user removes at the upgrade is free again, and no other mail to the address works', async () => {
  const [who, email] = [await signInAnonymously(t), newAddress()]
  const given = { company: 'ACME', phone: 'mine' }
  assert.equal((await who.post(`${AUTH}/update-user`, given)).status, 200)
  const [one, other] = [await askedBy(who, email), await askedBy(who, email)]
  const done = await type(who, email, one, { phone: null })
  assert.equal(done.status, 200, done.text)
  assert.equal((await me(renewed(done))).phone, null)
  assert.equal((await type(t.anon, email, other)).status, 400)
  assert.equal((await (await signInAnonymously(t)).post(`${AUTH}/update-user`, given)).status, 200)
})

test('of mails to several addresses that are followed at once in one session, one gives it the address', async () => {
  for (let round = 0; round < 5; round++) {
    const who = await signInAnonymously(t)
    const addresses = [newAddress(), newAddress(), newAddress()]
    const mails: string[] = []
    for (const email of addresses) mails.push(await askedBy(who, email))
    const answers = await Promise.all(mails.map((mail) => open(who, mail)))
    assert.ok(answers.every(({ status }) => status === 200))
    const kept = answers.filter(({ body }) => body.user?.id === who.id)
    assert.equal(kept.length, 1)
  }
})

test('so is the only field that the user had', async () => {
  const t = await testService({
    config: {
      auth: { anonymous: { enabled: true }, email_otp: { enabled: true }, user: { fields: { phone: {} } } },
    },
  })
  const [who, email] = [await signInAnonymously(t), 'only@example.com']
  assert.equal((await who.post(`${AUTH}/update-user`, { phone: 'mine' })).status, 200)
  const asked = await who.post(`${AUTH}/email-otp/send-verification-otp`, { email, type: 'sign-in' })
  assert.equal(asked.status, 200, asked.text)
  const mail = (await t.mails()).findLast((one) => one.includes(`To: ${email}`)) ?? ''
  const done = await who.post(`${AUTH}/sign-in/email-otp`, { email, otp: codeIn(mail), phone: null })
  assert.equal(done.status, 200, done.text)
  assert.partialDeepStrictEqual(done.body.user, { id: who.id, phone: null })
})
