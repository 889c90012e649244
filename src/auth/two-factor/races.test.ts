import assert from 'node:assert/strict'
import { test } from 'node:test'
import { issueTicket } from '#identity/tickets.ts'
import { tokenHash } from '#identity/tokens.ts'
import { insertTrustedDevice, rotateTrustedDevice } from '#identity/trusted-devices.ts'
import { randomToken, uuidv7 } from '#kernel/random.ts'
import { type Answer, testClock, testService, type User } from '#test/harness.ts'
import { codeOf, enrolTotp, insertFactor, mailedCode, wrongCode } from '#test/second-factor.ts'

const t = await testService({ clock: testClock({ isStopped: true }) })
const { kernel } = t.service
const { db } = kernel
const AUTH = '/api/auth'
const MANY = 50

/** A pending sign-in without the password's hash. */
const pending = async ({ id: userId, email: address }: User): Promise<string> => {
  const ticket = { userId, address, sessionId: null, lifetime: 600_000 }
  const payload = { methods: ['totp', 'otp'] as const, remember: true }
  return `2fa_${await issueTicket(kernel, 'second-factor', { ...ticket, payload })}`
}
const severalPending = (user: User) => Promise.all(Array.from({ length: MANY }, () => pending(user)))
const sessionsOf = async ({ id }: User) =>
  (await db.selectFrom('session').select('id').where('userId', '=', id).execute()).length

/** Sends all requests at once, and counts their outcomes. */
async function outcomes(requests: readonly (() => Promise<Answer>)[]): Promise<Record<string, number>> {
  const answers = await Promise.all(requests.map((send) => send()))
  const names = answers.map(({ status, body }) => (status === 200 ? 'right' : (body.code as string)))
  return Object.fromEntries([...Map.groupBy(names, (name) => name)].map(([name, all]) => [name, all.length]))
}
const times = (send: () => Promise<Answer>) => Array.from({ length: MANY }, () => send)

test('of 50 requests with one pending token and its right code, one gets a session', async () => {
  const ada = await t.signUp('Ada')
  const secret = await insertFactor(t, ada)
  const token = await pending(ada)
  const code = codeOf(t, secret)
  const found = await outcomes(times(() => t.anon.post(`${AUTH}/two-factor/verify-totp`, { token, code })))
  assert.deepEqual(found, { right: 1, INVALID_TWO_FACTOR_COOKIE: MANY - 1 })
  assert.equal(await sessionsOf(ada), 2)
})

test('of 50 sign-ins with one code of the app, one gets a session', async () => {
  const ada = await t.signUp('Ada')
  const secret = await insertFactor(t, ada)
  const code = codeOf(t, secret)
  const tokens = await severalPending(ada)
  const found = await outcomes(
    tokens.map((token) => () => t.anon.post(`${AUTH}/two-factor/verify-totp`, { token, code })),
  )
  assert.deepEqual(found, { right: 1, INVALID_CODE: 10, ACCOUNT_TEMPORARILY_LOCKED: MANY - 11 })
  assert.equal(await sessionsOf(ada), 2)
})

test('of 50 sign-ins with one backup code, one gets a session', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const [code] = ada.backupCodes
  const tokens = await severalPending(ada)
  const found = await outcomes(
    tokens.map((token) => () => t.anon.post(`${AUTH}/two-factor/verify-backup-code`, { token, code })),
  )
  assert.deepEqual(found, { right: 1, INVALID_BACKUP_CODE: 10, ACCOUNT_TEMPORARILY_LOCKED: MANY - 11 })
  assert.equal(await sessionsOf(ada), 2)
})

test('of 50 requests with one mailed code, one is right: in a sign-in and in a session', async () => {
  const ada = await t.signUp('Ada')
  await insertFactor(t, ada)
  const token = await pending(ada)
  await t.anon.post(`${AUTH}/two-factor/send-otp`, { token })
  const code = mailedCode(await t.mails())
  const signingIn = times(() => t.anon.post(`${AUTH}/two-factor/verify-otp`, { token, code }))
  assert.deepEqual(await outcomes(signingIn), { right: 1, INVALID_TWO_FACTOR_COOKIE: MANY - 1 })
  assert.equal(await sessionsOf(ada), 2)

  await ada.post(`${AUTH}/two-factor/send-otp`)
  const own = mailedCode(await t.mails())
  const inSession = times(() => ada.post(`${AUTH}/two-factor/verify-otp`, { code: own }))
  assert.deepEqual(await outcomes(inSession), { right: 1, OTP_HAS_EXPIRED: MANY - 1 })
})

test('of 50 wrong codes at once, a pending sign-in takes five', async () => {
  const ada = await t.signUp('Ada')
  const code = wrongCode(t, await insertFactor(t, ada))
  const token = await pending(ada)
  const found = await outcomes(times(() => t.anon.post(`${AUTH}/two-factor/verify-totp`, { token, code })))
  assert.deepEqual(found, {
    ...{ INVALID_CODE: 5, TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE: 1, INVALID_TWO_FACTOR_COOKIE: MANY - 6 },
  })
})

test('the token of a trusted device is replaced once', async () => {
  const { id: userId } = await t.signUp('Ada')
  const [now, token] = [kernel.now(), randomToken(kernel.random)]
  const expiresAt = new Date(now.getTime() + 60_000)
  const device = { id: uuidv7(now, kernel.random), userId, tokenHash: tokenHash(token), expiresAt }
  await insertTrustedDevice(db, { ...device, createdAt: now })
  const rotated = await Promise.all(
    Array.from({ length: MANY }, () =>
      rotateTrustedDevice(db, userId, token, { token: randomToken(kernel.random), expiresAt, now }),
    ),
  )
  assert.equal(rotated.filter(Boolean).length, 1)
})
