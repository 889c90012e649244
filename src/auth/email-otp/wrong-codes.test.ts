import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { deleteOldCodeCounts } from '#identity/wrong-mail-codes.ts'
import { type Actor, type Answer, actor, PASSWORD, testService, type User } from '#test/harness.ts'
import { codeIn, otherThan } from '#test/mailed-codes.ts'
import { proveAddress } from '#test/proven-address.ts'

const MAX = 4
const config = { auth: { email_otp: { enabled: true, max_wrong_codes: MAX }, magic_link: { enabled: true } } }
const t = await testService({ config })
const { kernel } = t.service
const AUTH = '/api/auth'
const [MINUTE, DAY] = [60_000, 86_400_000]
const LOCKED = '429 TOO_MANY_ATTEMPTS'

const proven = async (name: string): Promise<User> => proveAddress(t, await t.signUp(name))
const said = ({ status, body }: Answer) => (body?.code === undefined ? `${status}` : `${status} ${body.code}`)

/** A new mail with link and code. Codes of before have expired. */
async function mailTo(email: string): Promise<{ readonly code: string; readonly token: string }> {
  t.advance(6 * MINUTE)
  await t.mails()
  await t.anon.post(`${AUTH}/email-otp/send-verification-otp`, { email, type: 'sign-in' })
  const mail = (await t.mails()).findLast((one) => one.includes(`To: ${email}\r\n`)) ?? ''
  const [, token = ''] = /token=([\w-]{43})/.exec(mail.replace(/=\r?\n/g, '').replaceAll('=3D', '=')) ?? []
  return { code: codeIn(mail), token }
}
const enter = (email: string, otp: string, by: Actor = t.anon) =>
  by.post(`${AUTH}/sign-in/email-otp`, { email, otp })
/** Wrong codes, three for each mail, as a code allows. */
async function guess(email: string, count: number, by: Actor = t.anon): Promise<readonly string[]> {
  const outcomes: string[] = []
  while (outcomes.length < count) {
    const { code } = await mailTo(email)
    for (let tries = 0; tries < 3 && outcomes.length < count; tries++)
      outcomes.push(said(await enter(email, otherThan(code), by)))
  }
  return outcomes
}
const WRONG = Array.from({ length: MAX }, () => '400 INVALID_OTP')
async function deviceOf({ email }: User): Promise<Actor> {
  const { headers } = await t.anon.post(`${AUTH}/sign-in/email`, { email, password: PASSWORD })
  return actor(t.url, { 'x-service-known-device': headers.get('x-service-known-device') ?? '' })
}
const countsOf = async (address: string) => {
  const rows = await kernel.db
    .selectFrom('wrongMailCode')
    .select(['counter', 'failures'])
    .where('address', '=', address)
    .orderBy('counter')
    .execute()
  return rows
    .filter(({ failures }) => failures > 0)
    .map(({ counter, failures }) => [counter.split(':')[0], failures])
}

test('wrong codes of strangers count for the address over a day, and then links work and codes do not', async () => {
  const { email } = await proven('Ada')
  assert.deepEqual(await guess(email, MAX), WRONG)
  const { code, token } = await mailTo(email)
  const locked = await enter(email, code)
  assert.equal(said(locked), LOCKED)
  const wait = Number(locked.headers.get('retry-after'))
  assert.ok(wait > 86_400 - 1_800 && wait <= 86_400, `${wait}`)
  for (const path of ['check-verification-otp', 'reset-password'] as const) {
    const body = { email, otp: code, type: 'sign-in', password: PASSWORD }
    assert.equal(said(await t.anon.post(`${AUTH}/email-otp/${path}`, body)), LOCKED, path)
  }
  assert.deepEqual(await countsOf(email), [['strangers', MAX]], 'a refused try adds nothing')
  const link = await t.anon.get(`${AUTH}/magic-link/verify?token=${token}`)
  assert.equal(link.status, 200, link.text)

  t.advance(DAY)
  const { code: next } = await mailTo(email)
  assert.deepEqual(
    [said(await enter(email, otherThan(next))), said(await enter(email, next))],
    ['400 INVALID_OTP', '200'],
  )
  assert.deepEqual(await countsOf(email), [['strangers', 1]])
})

test('strangers lock neither a known device nor a session, and each has a count of its own', async () => {
  const ada = await proven('Ada')
  const [phone, laptop] = [await deviceOf(ada), await deviceOf(ada)]
  await guess(ada.email, MAX)
  assert.equal(said(await enter(ada.email, (await mailTo(ada.email)).code)), LOCKED)
  assert.equal(said(await enter(ada.email, (await mailTo(ada.email)).code, phone)), '200')
  assert.deepEqual(await guess(ada.email, MAX, phone), WRONG)
  const { code } = await mailTo(ada.email)
  assert.equal(said(await enter(ada.email, code, phone)), LOCKED)
  const check = (by: Actor) =>
    by.post(`${AUTH}/email-otp/check-verification-otp`, { email: ada.email, otp: code, type: 'sign-in' })
  assert.equal(said(await check(ada)), '200', 'the session')
  assert.equal(said(await enter(ada.email, code, laptop)), '200')
  assert.deepEqual(await countsOf(ada.email), [
    ['device', MAX],
    ['known', MAX],
    ['strangers', MAX],
  ])
})

test('a count of a time before the clock was set back does not last longer', async () => {
  const { email } = await proven('Ada')
  t.advance(2 * DAY)
  assert.deepEqual(await guess(email, MAX), WRONG)
  t.advance(-2 * DAY)
  const { code } = await mailTo(email)
  assert.equal(said(await enter(email, code)), '200')
})

test('a device of another user is a stranger', async () => {
  const [ada, eve] = [await proven('Ada'), await proven('Eve')]
  await guess(ada.email, MAX, await deviceOf(eve))
  assert.deepEqual(await countsOf(ada.email), [['strangers', MAX]])
  const own = { ...eve.headers, 'x-service-known-device': '' }
  assert.equal(said(await enter(ada.email, (await mailTo(ada.email)).code, actor(t.url, own))), LOCKED)
})

test('all devices of a user together have five times the wrong codes of one', async () => {
  const ada = await proven('Ada')
  for (let round = 0; round < 5; round++) await guess(ada.email, MAX, await deviceOf(ada))
  const { code } = await mailTo(ada.email)
  assert.equal(said(await enter(ada.email, code, await deviceOf(ada))), LOCKED)
  assert.equal(said(await enter(ada.email, code)), '200', 'strangers have not guessed')
})

test('tries that are right, or at no code that has tries left, do not count', async () => {
  const { email } = await proven('Ada')
  assert.equal(said(await enter(email, '123456')), '400 INVALID_OTP')
  for (let round = 0; round < MAX + 1; round++)
    assert.equal(said(await enter(email, (await mailTo(email)).code)), '200')
  const { code } = await mailTo(email)
  const outcomes: string[] = []
  for (let tries = 0; tries < 6; tries++) outcomes.push(said(await enter(email, otherThan(code))))
  const spent = '403 TOO_MANY_ATTEMPTS'
  assert.deepEqual(outcomes, [...WRONG.slice(0, 3), spent, spent, spent])
  t.advance(6 * MINUTE)
  assert.equal(said(await enter(email, code)), '400 OTP_EXPIRED')
  assert.deepEqual(await countsOf(email), [['strangers', 3]])
})

test('of 50 who try at once no more are compared than the day has left', async () => {
  const { email } = await proven('Ada')
  await guess(email, MAX - 1)
  const { code } = await mailTo(email)
  const answers = await Promise.all(Array.from({ length: 50 }, () => enter(email, otherThan(code))))
  const outcomes = answers.map(said)
  assert.equal(outcomes.filter((one) => one === '400 INVALID_OTP').length, 1)
  assert.equal(outcomes.filter((one) => one === LOCKED).length, 49)
  assert.deepEqual(await countsOf(email), [['strangers', MAX]])
})

test('an address without an account is answered alike', async () => {
  const closed = await testService({
    controlUrl: t.controlUrl,
    config: { auth: { email_otp: { ...config.auth.email_otp, sign_up: false } } },
  })
  const email = 'nobody@example.com'
  const outcomes: string[] = []
  for (let tries = 0; tries < MAX + 2; tries++) {
    if (tries % 3 === 0) {
      closed.advance(6 * MINUTE)
      await closed.anon.post(`${AUTH}/email-otp/send-verification-otp`, { email, type: 'sign-in' })
      await closed.mails()
    }
    outcomes.push(said(await enter(email, '123456', closed.anon)))
  }
  assert.deepEqual(outcomes, [...WRONG, LOCKED, LOCKED])
})

test('for an address that is not the user’s yet, a device and a session of the user count as strangers', async () => {
  const eve = await t.signUp('Eve')
  const newEmail = `new-${eve.email}`
  const device = { ...(await deviceOf(eve)).headers, ...eve.headers }
  const change = (path: string, more: object) =>
    eve.post(`${AUTH}/email-otp/${path}`, { newEmail, ...more }, { headers: device })
  await change('request-email-change', {})
  await t.mails()
  assert.equal(said(await change('change-email', { otp: '123456' })), '400 INVALID_OTP')
  assert.deepEqual(await countsOf(newEmail), [['strangers', 1]])
})

test('a code that allows a change of address is one try, also while codes of both kinds are open', async () => {
  const ada = await proven('Ada')
  const newEmail = `new-${ada.email}`
  const change = (more = {}) => ada.post(`${AUTH}/email-otp/request-email-change`, { newEmail, ...more })
  await t.mails()
  await change()
  const [allow = ''] = await t.mails()
  await ada.post(`${AUTH}/email-otp/send-verification-otp`, { email: ada.email, type: 'email-verification' })
  const codes = (await t.mails()).map(codeIn)
  assert.equal(codes.length, 1)
  const wrong = otherThan(codeIn(allow), ...codes)
  const counts: unknown[] = []
  for (let tries = 0; tries < 4; tries++)
    counts.push([said(await change({ otp: wrong })), await countsOf(ada.email)])
  const after = (failures: number) => [
    ['known', failures],
    ['session', failures],
  ]
  assert.deepEqual(counts, [
    ['400 INVALID_OTP', after(1)],
    ['400 INVALID_OTP', after(2)],
    ['400 INVALID_OTP', after(3)],
    ['403 TOO_MANY_ATTEMPTS', after(3)],
  ])
  assert.equal(said(await change({ otp: codeIn(allow) })), '403 TOO_MANY_ATTEMPTS')
})

test('until the address is proven, a device and a session of its user count as strangers: the user may be one', async () => {
  const eve = await t.signUp('Eve')
  const own = { ...(await deviceOf(eve)).headers, ...eve.headers }
  await guess(eve.email, MAX, actor(t.url, own))
  const { code } = await mailTo(eve.email)
  assert.equal(said(await enter(eve.email, code, actor(t.url, own))), LOCKED)
  assert.deepEqual(await countsOf(eve.email), [['strangers', MAX]])
})

test('counts are deleted a day after they began', async () => {
  const { email } = await proven('Ada')
  await guess(email, 1)
  await deleteOldCodeCounts(kernel.db, kernel.now(), 1_000)
  assert.deepEqual(await countsOf(email), [['strangers', 1]])
  t.advance(DAY)
  assert.ok((await deleteOldCodeCounts(kernel.db, kernel.now(), 1_000)) > 0)
  assert.deepEqual(await countsOf(email), [])
})

test('a count that begins anew while old ones are deleted stays', async () => {
  const { email } = await proven('Ada')
  await guess(email, 1)
  t.advance(DAY)
  const { deleted } = await kernel.db.transaction().execute(async (db) => {
    await db
      .updateTable('wrongMailCode')
      .set({ beganAt: kernel.now() })
      .where('address', '=', email)
      .execute()
    const deleted = deleteOldCodeCounts(kernel.db, kernel.now(), 1_000)
    await Promise.race([deleted, sleep(500)])
    // Not awaited here: it might wait for this transaction.
    return { deleted }
  })
  await deleted
  assert.deepEqual(await countsOf(email), [['strangers', 1]])
})
