import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import type { Random } from '#kernel/random.ts'
import { recurringTable } from '#startup/recurring-work.ts'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { type Answer, testService } from '#test/harness.ts'
import { otherThan } from '#test/mailed-codes.ts'
import { proveAddress } from '#test/proven-address.ts'
import { newMailedCode } from '../two-factor/codes.ts'

const MANY = { requests: 1_000_000 }
const RULES = { sign_in: MANY, sign_up: MANY, mail: MANY, default: MANY, mail_recipient: { requests: 2 } }
const limited = await testService({
  config: {
    auth: { email_otp: { enabled: true }, magic_link: { enabled: true } },
    rate_limits: { enabled: true, rules: RULES },
  },
})
const closed = await testService({
  config: {
    auth: {
      ...{ ...EVERY_FEATURE, email_otp: { enabled: true, sign_up: false }, magic_link: { enabled: false } },
      ...{ hide_registered_emails: true, email_password: { require_email_verification: true } },
    },
  },
})
/** New users by a link alone. */
const byLink = await testService({
  config: { auth: { email_otp: { enabled: true, sign_up: false }, magic_link: { enabled: true } } },
})
const AUTH = '/api/auth'
const TYPES = ['sign-in', 'email-verification', 'forget-password'] as const
const codeOf = ({ status, body }: Answer) => [status, body.code]

const askFor = (t: typeof closed, email: string, type: string) =>
  t.anon.post(`${AUTH}/email-otp/send-verification-otp`, { email, type })
const tryCode = (t: typeof closed, email: string, type: string, otp: string) =>
  t.anon.post(`${AUTH}/email-otp/check-verification-otp`, { email, type, otp })
/** Tries that are wrong. */
async function tries(email: string, type: string, count: number, t = closed): Promise<unknown[]> {
  const outcomes = []
  for (let round = 0; round < count; round++)
    outcomes.push(codeOf(await tryCode(t, email, type, otherThan())))
  return outcomes
}

/** Runs the work, and returns every code that may have come of it. */
async function codesDrawnBy(work: () => Promise<unknown>): Promise<readonly string[]> {
  const { kernel } = limited.service
  const { random } = kernel
  const drawn: Buffer[] = []
  const recording: Random = (bytes) => {
    const given = random(bytes)
    drawn.push(given)
    return given
  }
  const replaced = mock.property(kernel as { random: Random }, 'random', recording)
  await work()
  replaced.mock.restore()
  return drawn.filter(({ length }) => length === 8).map((bytes) => newMailedCode(() => bytes))
}

test('a code that was not mailed, since the address has had too many mails, is never right', async () => {
  const ada = await proveAddress(limited, await limited.signUp('Ada'))
  await limited.mails()
  const ask = () => askFor(limited, ada.email, 'forget-password')
  const drawn = []
  for (let round = 0; round < 3; round++)
    drawn.push(await codesDrawnBy(async () => [await ask(), await limited.mails()]))
  const [, mailed = [], unmailed = []] = drawn
  const isRight = async (codes: readonly string[]) => {
    const answers = []
    for (const code of codes)
      answers.push((await tryCode(limited, ada.email, 'forget-password', code)).status)
    return answers.includes(200)
  }
  assert.deepEqual([await isRight(mailed), await isRight(unmailed)], [true, false])
})

test('old codes and their rows, which end some time, do not show whether an address has an account', async () => {
  const ada = await proveAddress(closed, await closed.signUp('Ada'))
  const prune = recurringTable(closed.service.kernel).find(({ name }) => name === 'prune-tickets')
  for (const type of TYPES) {
    const seen = []
    for (const email of [ada.email, `nobody-${ada.email}`]) {
      await askFor(closed, email, type)
      await closed.mails()
      const outcomes = []
      for (const minutes of [6, 15, 50]) {
        closed.advance(minutes * 60_000)
        await prune?.run()
        outcomes.push(await tries(email, type, 1))
      }
      seen.push(outcomes)
    }
    assert.deepEqual(seen[0], seen[1], type)
  }
})

test('tries at the code of a hidden sign-up are answered as those of a new account', async () => {
  const ada = await proveAddress(closed, await closed.signUp('Ada'))
  const seen = []
  for (const email of [ada.email, `new-${ada.email}`]) {
    const body = { name: 'Eve', email, password: 'a password of Eve' }
    assert.equal((await closed.anon.post(`${AUTH}/sign-up/email`, body)).status, 200)
    await closed.mails()
    seen.push(await tries(email, 'email-verification', 5))
  }
  assert.deepEqual(seen[0], seen[1])
})

test('tries at the code of a link that was asked for do not show whether there was a mail', async () => {
  for (const [path, type] of [
    ['/forget-password', 'forget-password'],
    ['/send-verification-email', 'email-verification'],
  ] as const) {
    const ada = await closed.signUp('Ada')
    const bob = await proveAddress(closed, await closed.signUp('Bob'))
    const seen = []
    for (const email of [ada.email, bob.email, `nobody-${ada.email}`]) {
      assert.equal((await closed.anon.post(`${AUTH}${path}`, { email })).status, 200)
      await closed.mails()
      seen.push(JSON.stringify(await tries(email, type, 5)))
    }
    assert.equal(new Set(seen).size, 1, `${path} ${seen}`)
  }
})

test('where a link opens accounts and a code does not, tries at codes show no account', async () => {
  const ada = await proveAddress(byLink, await byLink.signUp('Ada'))
  const seen = []
  for (const email of [ada.email, `nobody-${ada.email}`]) {
    await askFor(byLink, email, 'sign-in')
    const [mail = ''] = (await byLink.mails()).filter((one) => one.includes(`To: ${email}`))
    assert.equal(mail.includes('code is'), email === ada.email)
    seen.push(await tries(email, 'sign-in', 5, byLink))
  }
  assert.deepEqual(seen[0], seen[1])
})
