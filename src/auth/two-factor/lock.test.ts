import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, PASSWORD, testClock, testService } from '#test/harness.ts'
import {
  codeOf,
  type Enrolled,
  enrolTotp,
  insertFactor,
  pendingSignIn,
  wrongCode,
} from '#test/second-factor.ts'
import { deleteOldFailures } from './store.ts'

// A connection for each of fifty who wait for the lock of one user.
const t = await testService({
  config: { database: { max_connections: 60 } },
  clock: testClock({ isStopped: true }),
})
const { db, now } = t.service.kernel
const AUTH = '/api/auth'
const HEADER = 'x-service-known-device'
const DAY = 86_400_000

const shows = (device: string | undefined) => (device === undefined ? {} : { headers: { [HEADER]: device } })

/** A sign-in with the password and this code. */
async function complete(ada: Enrolled, code: string, device?: string): Promise<Answer> {
  const { token } = (await pendingSignIn(t.anon, ada.email)).body
  return t.anon.post(`${AUTH}/two-factor/verify-totp`, { token, code }, shows(device))
}
async function right(ada: Enrolled, device?: string): Promise<Answer> {
  t.advance(30_000)
  return complete(ada, codeOf(t, ada.secret), device)
}
async function newDevice(ada: Enrolled): Promise<string> {
  const answer = await right(ada)
  assert.equal(answer.status, 200, answer.text)
  return answer.headers.get(HEADER) ?? ''
}
const inSession = (ada: Enrolled, code: string) => ada.post(`${AUTH}/two-factor/verify-totp`, { code })

/** Ten wrong codes; the eleventh answer. */
async function lock(attempt: () => Promise<Answer>): Promise<string> {
  for (let tries = 0; tries < 10; tries++) assert.equal((await attempt()).body.code, 'INVALID_CODE')
  return (await attempt()).body.code
}
const LOCKED = 'ACCOUNT_TEMPORARILY_LOCKED'

test('ten wrong codes by who holds the password lock neither a known device nor a session', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const device = await newDevice(ada)
  const wrong = wrongCode(t, ada.secret)
  assert.equal(await lock(() => complete(ada, wrong)), LOCKED)
  assert.equal((await right(ada)).body.code, LOCKED, 'strangers together')
  assert.equal((await right(ada, device)).status, 200)
  t.advance(30_000)
  assert.equal((await inSession(ada, codeOf(t, ada.secret))).status, 200)
  assert.equal((await right(ada)).body.code, LOCKED, 'right codes elsewhere end nothing here')
})

test('a known device and a session have ten wrong codes each, and lock no one else', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const [device, other] = [await newDevice(ada), await newDevice(ada)]
  const wrong = wrongCode(t, ada.secret)
  assert.equal(await lock(() => complete(ada, wrong, device)), LOCKED)
  assert.equal(await lock(() => inSession(ada, wrong)), LOCKED)
  const again = await ada.post(`${AUTH}/reauthenticate`, { code: codeOf(t, ada.secret, 1) })
  assert.equal(again.body.code, LOCKED, 'wherever a code is taken in the session')
  for (const by of [undefined, other]) assert.equal((await right(ada, by)).status, 200)
  t.advance(900_000)
  assert.equal((await right(ada, device)).status, 200)
})

test('a device of another account, or of nobody, is a stranger', async () => {
  const [ada, bob] = [await enrolTotp(t, await t.signUp('Ada')), await enrolTotp(t, await t.signUp('Bob'))]
  const device = await newDevice(bob)
  const wrong = wrongCode(t, ada.secret)
  assert.equal(await lock(() => complete(ada, wrong)), LOCKED)
  for (const by of [device, 'made up', '']) assert.equal((await right(ada, by)).body.code, LOCKED)
})

test('of fifty wrong codes at once in sessions or on a device ten are looked at', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const device = await newDevice(ada)
  const wrong = wrongCode(t, ada.secret)
  for (const attempt of [() => inSession(ada, wrong), () => complete(ada, wrong, device)]) {
    const answers = await Promise.all(Array.from({ length: 50 }, attempt))
    assert.equal(answers.filter(({ body }) => body.code === 'INVALID_CODE').length, 10)
  }
})

test('more sessions are not any number of tries, and one stolen session locks out no other in the long run', async () => {
  const ada = await t.signUp('Ada')
  const sessions: string[] = []
  for (let more = 0; more < 8; more++) {
    const body = { email: ada.email, password: PASSWORD }
    sessions.push((await t.anon.post(`${AUTH}/sign-in/email`, body)).body.token)
  }
  const secret = await insertFactor(t, ada)
  const wrong = wrongCode(t, secret)
  const attempt = (token = '', code = wrong) =>
    t.anon.post(`${AUTH}/two-factor/verify-totp`, { code }, { headers: { authorization: `Bearer ${token}` } })
  let looked = 0
  for (const token of sessions)
    for (let tries = 0; tries < 10; tries++) if ((await attempt(token)).body.code === 'INVALID_CODE') looked++
  assert.equal(looked, 50)
  t.advance(900_000)
  for (let quarters = 0; quarters < 10; quarters++) {
    for (let tries = 0; tries < 10; tries++) await attempt(sessions[0], wrongCode(t, secret))
    t.advance(900_000)
  }
  assert.equal((await attempt(sessions[1], codeOf(t, secret))).status, 200)
})

test('a lock of a time before the clock was set back does not last longer', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const device = await newDevice(ada)
  t.advance(DAY)
  const wrong = wrongCode(t, ada.secret)
  assert.equal(await lock(() => complete(ada, wrong)), LOCKED)
  assert.equal(await lock(() => complete(ada, wrong, device)), LOCKED)
  t.advance(-DAY)
  assert.equal((await right(ada)).status, 200)
  assert.equal((await right(ada, device)).status, 200)
})

test('old counts are deleted, and with the factor all of them', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const counts = () =>
    db
      .selectFrom('wrongCode')
      .innerJoin('twoFactor', 'twoFactor.id', 'twoFactorId')
      .where('userId', '=', ada.id)
      .selectAll('wrongCode')
      .execute()
  await complete(ada, wrongCode(t, ada.secret))
  await deleteOldFailures(db, now(), 1_000)
  assert.equal((await counts()).length, 1)
  t.advance(86_400_000)
  await deleteOldFailures(db, now(), 1_000)
  assert.deepEqual(await counts(), [])
})

test('a lock that begins while old counts are deleted stays', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  await complete(ada, wrongCode(t, ada.secret))
  t.advance(86_400_000)
  const lockedUntil = new Date(now().getTime() + 60_000)
  const ofAda = db.selectFrom('twoFactor').select('id').where('userId', '=', ada.id)
  const { deleted } = await db.transaction().execute(async (locking) => {
    await locking.updateTable('wrongCode').set({ lockedUntil }).where('twoFactorId', 'in', ofAda).execute()
    const deleted = deleteOldFailures(db, now(), 1_000)
    await Promise.race([deleted, sleep(500)])
    // Not awaited here: it might wait for this transaction.
    return { deleted }
  })
  await deleted
  assert.equal((await right(ada)).body.code, 'ACCOUNT_TEMPORARILY_LOCKED')
})
