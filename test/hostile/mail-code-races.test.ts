import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MailedPurpose } from '#identity/ticket-purposes.ts'
import { type Actor, type Answer, testService, type User } from '#test/harness.ts'
import { codeIn, otherThan } from '#test/mailed-codes.ts'
import {
  carryOut,
  columns,
  expected,
  expectOpens,
  revokingTurn,
  setupOf,
  type Turn,
} from '#test/proof-races/cases.ts'
import { raceSettings } from '#test/proof-races/service.ts'
import { hashStopper } from '#test/proof-races/stops.ts'
import { createUsers, readStates, START, storedHashes } from '#test/proof-races/user-state.ts'
import { RESET_BY_CODE } from '#test/proof-races/verbs.ts'
import { proveAddress } from '#test/proven-address.ts'
import { sampled } from '#test/sample.ts'

// A connection for each of fifty who wait for the lock of one user.
const t = await testService({ config: { database: { max_connections: 60 }, ...(await raceSettings()) } })
const { kernel } = t.service
const AUTH = '/api/auth'
const stored = await storedHashes(kernel)
const hashes = hashStopper(kernel)
// Another admin, so that no user of a race is the last one.
await createUsers(kernel, [{ state: { ...START, role: 'admin' }, age: 0 }], stored)

/** The reset has checked its code and waits for its hash while the other verb commits. */
async function resetWhile(other: Turn): Promise<void> {
  const acting: Turn = { verb: RESET_BY_CODE, me: 'S' }
  const setup = setupOf(acting.verb, other.verb)
  const { state: start } = setup
  const [person] = await createUsers(kernel, [setup], stored)
  assert.ok(person)
  const carry = ({ verb, me }: Turn) => carryOut(t, verb.action(person, me), person)
  const hash = hashes.stopNext()
  const reset = carry(acting)
  await hash.reached
  const first = await carry(other)
  hash.release()
  const one = expected(other, start, start)
  const two = expected(acting, one.state, start)
  assert.deepEqual([first, await reset], [one.outcome, two.outcome], 'responses')
  const seen = (await readStates(kernel, [person])).get(person)
  assert.deepEqual(seen, two.state.user === 'gone' ? 'gone' : two.state)
  await expectOpens(t, person, two.state, start)
}

for (const column of sampled(columns, 4))
  test(`a reset by code is judged again if "${column}" commits between its check and its redemption`, () =>
    resetWhile(revokingTurn(column)))

test('of two resets by one code, both of which have passed the check, the first to redeem it wins', () =>
  resetWhile({ verb: RESET_BY_CODE, me: 'O' }))

/** A code in a mail. */
type Mailed = {
  readonly code: string
  readonly address: string
  readonly redeem: (otp: string, index: number) => Promise<Answer>
}
type Use = {
  readonly purpose: MailedPurpose
  readonly begin: () => Promise<Mailed>
  /** Of those who come after the redemption. */
  readonly late: string
  /** When the tries are spent. */
  readonly spent: string
}

const post = (path: string, body: object, by: Actor = t.anon) => by.post(`${AUTH}${path}`, body)
const proven = async (name: string): Promise<User> => proveAddress(t, await t.signUp(name))

async function codeTo(address: string): Promise<string> {
  const mail = (await t.mails()).findLast((one) => one.includes(`To: ${address}\r\n`))
  return codeIn(mail ?? '')
}

/** Asks for a code in no browser. */
async function ask(email: string, type: string): Promise<string> {
  await t.mails()
  await post('/email-otp/send-verification-otp', { email, type })
  return codeTo(email)
}

const USES: Readonly<Record<string, Use>> = {
  'sign-in': {
    purpose: 'sign-in',
    async begin() {
      const { email } = await proven('Ada')
      const redeem = (otp: string) => post('/sign-in/email-otp', { email, otp })
      return { code: await ask(email, 'sign-in'), address: email, redeem }
    },
    late: 'INVALID_OTP',
    spent: 'TOO_MANY_ATTEMPTS',
  },
  'verify-email': {
    purpose: 'verify-email',
    async begin() {
      const { email } = await t.signUp('Ada')
      const redeem = (otp: string) => post('/email-otp/verify-email', { email, otp })
      return { code: await ask(email, 'email-verification'), address: email, redeem }
    },
    late: 'INVALID_OTP',
    spent: 'TOO_MANY_ATTEMPTS',
  },
  'reset-password': {
    purpose: 'reset-password',
    async begin() {
      const { email } = await proven('Ada')
      const redeem = (otp: string, index: number) =>
        post('/email-otp/reset-password', { email, otp, password: passwordOf(index) })
      return { code: await ask(email, 'forget-password'), address: email, redeem }
    },
    late: 'INVALID_OTP',
    spent: 'TOO_MANY_ATTEMPTS',
  },
  'request-email-change': {
    purpose: 'confirm-change-email',
    async begin() {
      const ada = await proven('Ada')
      const change = (more = {}) =>
        post('/email-otp/request-email-change', { newEmail: `new-${ada.email}`, ...more }, ada)
      await t.mails()
      await change()
      return { code: await codeTo(ada.email), address: ada.email, redeem: (otp) => change({ otp }) }
    },
    late: 'INVALID_OTP',
    spent: 'TOO_MANY_ATTEMPTS',
  },
  'request-email-change, by a code that confirms the address': {
    purpose: 'verify-email',
    async begin() {
      const ada = await proven('Ada')
      const newEmail = `new-${ada.email}`
      const redeem = (otp: string) => post('/email-otp/request-email-change', { newEmail, otp }, ada)
      return { code: await ask(ada.email, 'email-verification'), address: ada.email, redeem }
    },
    late: 'INVALID_OTP',
    spent: 'TOO_MANY_ATTEMPTS',
  },
  'change-email': {
    purpose: 'change-email',
    async begin() {
      const ada = await t.signUp('Ada')
      const newEmail = `new-${ada.email}`
      await t.mails()
      await post('/email-otp/request-email-change', { newEmail }, ada)
      const redeem = (otp: string) => post('/email-otp/change-email', { newEmail, otp }, ada)
      return { code: await codeTo(newEmail), address: newEmail, redeem }
    },
    late: 'EMAIL_IS_THE_SAME',
    spent: 'TOO_MANY_ATTEMPTS',
  },
}

const passwordOf = (index: number): string => `password number ${index}`
const atOnce = (count: number, work: (index: number) => Promise<Answer>): Promise<readonly Answer[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => work(index)))
/** How often each status or code was answered. */
const counted = (answers: readonly Answer[]): Readonly<Record<string, number>> =>
  Object.fromEntries(
    Map.groupBy(answers, ({ status, body }) => (status === 200 ? 'done' : body.code))
      .entries()
      .map(([said, same]) => [said, same.length]),
  )

for (const [name, { purpose, begin, late, spent }] of Object.entries(USES)) {
  test(`${name}: of fifty who redeem one code at once one succeeds`, async () => {
    const { code, redeem } = await begin()
    assert.deepEqual(counted(await atOnce(50, (index) => redeem(code, index))), { done: 1, [late]: 49 })
  })

  test(`${name}: twenty wrong codes at once are all counted, and spend the code`, async () => {
    const { code, address, redeem } = await begin()
    const wrong = counted(await atOnce(20, (index) => redeem(otherThan(code), index)))
    const answers = spent === 'INVALID_OTP' ? { INVALID_OTP: 20 } : { INVALID_OTP: 3, [spent]: 17 }
    assert.deepEqual(wrong, answers)
    const rows = await kernel.db
      .selectFrom('verification')
      .select(['attempts', 'browserAttempts'])
      .where('address', '=', address)
      .where('purpose', '=', purpose)
      .execute()
    assert.deepEqual(rows, [{ attempts: 20, browserAttempts: 0 }])
    assert.equal((await redeem(code, 0)).body.code, spent)
  })
}

test('of fifty resets at once by one code the password of the one that succeeds is set', async () => {
  const { code, address: email, redeem } = (await USES['reset-password']?.begin()) ?? assert.fail()
  const answers = await atOnce(50, (index) => redeem(code, index))
  const winner = answers.findIndex(({ status }) => status === 200)
  const enter = (index: number) => post('/sign-in/email', { email, password: passwordOf(index) })
  assert.equal((await enter(winner)).status, 200)
  assert.equal((await enter((winner + 1) % 50)).status, 401)
})
