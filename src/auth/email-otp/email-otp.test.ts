import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { type Answer, PASSWORD, testService, type User } from '#test/harness.ts'
import { codeIn, otherThan } from '#test/mailed-codes.ts'
import { proveAddress } from '#test/proven-address.ts'
import { cookiesOf } from '#test/second-factor.ts'

const t = await testService({ config: { auth: EVERY_FEATURE } })
/** No new users, and no links to sign in. */
const closed = await testService({ config: { auth: { email_otp: { enabled: true, sign_up: false } } } })
const AUTH = '/api/auth'
const MINUTE = 60_000
const COOKIE = 'service-auth.mail-code'
const NEW_PASSWORD = 'another horse staple'

const newAddress = () => `${randomUUID().slice(0, 8)}@example.com`
type Asked = { readonly mail: string; readonly code: string; readonly headers: Record<string, string> }

/** Asks for a code, in the browser of these headers. */
async function ask(email: string, type = 'sign-in', headers = {}, service = t): Promise<Asked> {
  const body = { email, type }
  const answer = await service.anon.post(`${AUTH}/email-otp/send-verification-otp`, body, { headers })
  assert.deepEqual([answer.status, answer.body], [200, { success: true }], answer.text)
  const mail = (await service.mails()).find((one) => one.toLowerCase().includes(`to: ${email}`)) ?? ''
  const browser = { cookie: `${COOKIE}=${cookiesOf(answer)[COOKIE]}` }
  return { mail, code: mail.includes('code is') ? codeIn(mail) : '', headers: browser }
}
const signIn = (email: string, otp: string, headers = {}, service = t): Promise<Answer> =>
  service.anon.post(`${AUTH}/sign-in/email-otp`, { email, otp }, { headers })
const post = (path: string, body: object, headers = {}) => t.anon.post(`${AUTH}${path}`, body, { headers })
const codeOf = ({ status, body }: Answer) => [status, body.code]
const WRONG = [400, 'INVALID_OTP']
const SPENT = [403, 'TOO_MANY_ATTEMPTS']
const proven = async (name: string): Promise<User> => proveAddress(t, await t.signUp(name))

test('a code signs in, once, and opens an account for an address without one', async () => {
  const email = newAddress()
  const { code } = await ask(email)
  const { status, body } = await post('/sign-in/email-otp', { email, otp: code, name: 'Ada' })
  assert.deepEqual(
    [status, body.user.email, body.user.name, body.user.emailVerified],
    [200, email, 'Ada', true],
  )
  assert.equal(typeof body.token, 'string')
  assert.deepEqual(codeOf(await signIn(email, code)), WRONG)
  const again = await ask(email)
  assert.equal(
    (await signIn(email.toUpperCase(), ` ${again.code.slice(0, 3)} ${again.code.slice(3)}`)).body.user.id,
    body.user.id,
  )
})

test('a code is good for its address and purpose, and for five minutes', async () => {
  const ada = await proven('Ada')
  const { code } = await ask(ada.email)
  assert.deepEqual(codeOf(await signIn(newAddress(), code)), WRONG)
  const reset = { email: ada.email, otp: code, password: NEW_PASSWORD }
  assert.deepEqual(codeOf(await post('/email-otp/reset-password', reset)), WRONG)
  assert.deepEqual(codeOf(await post('/email-otp/verify-email', { email: ada.email, otp: code })), WRONG)
  t.advance(5 * MINUTE + 1)
  assert.deepEqual(codeOf(await signIn(ada.email, code)), [400, 'OTP_EXPIRED'])
})

test('the browser that asked has three tries, all others three, and neither spends the others', async () => {
  for (const [first, second] of [
    [true, false],
    [false, true],
  ] as const) {
    const email = newAddress()
    const { code, headers } = await ask(email)
    const by = (isAsker: boolean) => (isAsker ? headers : {})
    for (let round = 0; round < 3; round++)
      assert.deepEqual(codeOf(await signIn(email, otherThan(code), by(first))), WRONG)
    assert.deepEqual(codeOf(await signIn(email, code, by(first))), SPENT)
    assert.deepEqual(codeOf(await signIn(email, otherThan(code), by(second))), WRONG)
    assert.equal((await signIn(email, code, by(second))).status, 200)
  }
})

test('wrong codes spend the code, and never the link', async () => {
  const email = newAddress()
  const { mail, code, headers } = await ask(email)
  for (let round = 0; round < 4; round++)
    for (const by of [headers, {}]) await signIn(email, otherThan(code), by)
  assert.deepEqual(codeOf(await signIn(email, code)), SPENT)
  const [, token] = /token=3D([\w-]+)/.exec(mail.replace(/=\r?\n/g, '')) ?? []
  assert.equal((await t.anon.get(`${AUTH}/magic-link/verify?token=${token}`)).status, 200)
})

test('wrong codes in parallel are all counted, and of fifty right ones at once one is accepted', async () => {
  const email = newAddress()
  const { code } = await ask(email)
  const wrong = await Promise.all(Array.from({ length: 50 }, () => signIn(email, otherThan(code))))
  assert.equal(wrong.filter(({ body }) => body.code === 'INVALID_OTP').length, 3)
  assert.equal(wrong.filter(({ body }) => body.code === 'TOO_MANY_ATTEMPTS').length, 47)
  const { attempts, browserAttempts } = await t.service.kernel.db
    .selectFrom('verification')
    .select(['attempts', 'browserAttempts'])
    .where('address', '=', email)
    .executeTakeFirstOrThrow()
  assert.deepEqual([attempts, browserAttempts], [50, 0])

  const other = newAddress()
  const { code: right, headers } = await ask(other)
  const answers = await Promise.all(Array.from({ length: 50 }, () => signIn(other, right, headers)))
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
})

test('a new request replaces no code; three of an address are open, and one more for a known device', async () => {
  const ada = await proven('Ada')
  const entered = await post('/sign-in/email', { email: ada.email, password: PASSWORD })
  const device = { 'x-service-known-device': entered.headers.get('x-service-known-device') ?? '' }
  const codes = [await ask(ada.email), await ask(ada.email), await ask(ada.email)]
  assert.ok(codes.every(({ code }) => code !== ''))
  const fourth = await ask(ada.email)
  assert.deepEqual([fourth.code, fourth.mail.includes('magic-link')], ['', true], 'a link alone')
  assert.notEqual(
    (await ask(ada.email, 'forget-password')).code,
    '',
    'codes of another use are counted apart',
  )
  const own = await ask(ada.email, 'sign-in', device)
  assert.notEqual(own.code, '')
  assert.equal((await ask(ada.email, 'sign-in', device)).code, '')
  assert.equal((await signIn(ada.email, own.code, own.headers)).status, 200)
  assert.equal(
    (await signIn(ada.email, codes[0]?.code ?? '', codes[0]?.headers)).status,
    200,
    'the first one',
  )
})

test('an address without an account is answered like any other, and gets no mail', async () => {
  const known = await closed.signUp('Ada')
  await closed.mails()
  const outcomes = []
  for (const email of [known.email, newAddress()]) {
    for (const type of ['sign-in', 'email-verification', 'forget-password']) {
      const { mail, code, headers } = await ask(email, type, {}, closed)
      assert.equal(mail !== '', email === known.email, type)
      const tried = []
      for (let round = 0; round < 5; round++) {
        const body = { email, type, otp: otherThan(code) }
        tried.push(
          codeOf(await closed.anon.post(`${AUTH}/email-otp/check-verification-otp`, body, { headers })),
        )
      }
      closed.advance(5 * MINUTE + 1)
      const body = { email, type, otp: otherThan(code) }
      tried.push(codeOf(await closed.anon.post(`${AUTH}/email-otp/check-verification-otp`, body)))
      outcomes.push(JSON.stringify(tried))
    }
  }
  assert.equal(new Set(outcomes).size, 1)
  assert.equal(outcomes[0], JSON.stringify([WRONG, WRONG, WRONG, SPENT, SPENT, [400, 'OTP_EXPIRED']]))
})

test('a check leaves a right code valid, and counts a wrong one', async () => {
  const ada = await proven('Ada')
  const { code, headers } = await ask(ada.email, 'forget-password')
  const check = (otp: string) =>
    post('/email-otp/check-verification-otp', { email: ada.email, type: 'forget-password', otp }, headers)
  for (let round = 0; round < 5; round++) assert.deepEqual((await check(code)).body, { success: true })
  for (let round = 0; round < 3; round++) assert.deepEqual(codeOf(await check(otherThan(code))), WRONG)
  assert.deepEqual(codeOf(await check(code)), SPENT)
})

test('a code resets the password, ends every session, and proves the address', async () => {
  const ada = await t.signUp('Ada')
  await t.mails()
  for (const path of ['/email-otp/request-password-reset', '/forget-password/email-otp']) {
    assert.deepEqual((await post(path, { email: ada.email })).body, { success: true })
    const [mail = ''] = await t.mails()
    const body = { email: ada.email, otp: codeIn(mail), password: NEW_PASSWORD }
    assert.deepEqual(codeOf(await post('/email-otp/reset-password', { ...body, password: 'short' })), [
      400,
      'PASSWORD_TOO_SHORT',
    ])
    assert.deepEqual((await post('/email-otp/reset-password', body)).body, { success: true })
    await t.mails()
  }
  assert.equal((await ada.get(`${AUTH}/get-session`)).status, 401)
  const entered = await post('/sign-in/email', { email: ada.email, password: NEW_PASSWORD })
  assert.deepEqual([entered.status, entered.body.user.emailVerified], [200, true])
})

test('a code verifies the address: in a session everything of it stays, elsewhere what others may have added goes', async () => {
  const ada = await t.signUp('Ada')
  const { code } = await ask(ada.email, 'email-verification')
  const verified = await ada.post(`${AUTH}/email-otp/verify-email`, { email: ada.email, otp: code })
  assert.deepEqual([verified.status, verified.body.status, verified.body.token], [200, true, null])
  assert.equal(verified.body.user.emailVerified, true)
  assert.equal((await ada.get(`${AUTH}/get-session`)).status, 200)
  const bob = await t.signUp('Bob')
  const other = await ask(bob.email, 'email-verification')
  assert.equal((await post('/email-otp/verify-email', { email: bob.email, otp: other.code })).status, 200)
  assert.equal((await bob.get(`${AUTH}/get-session`)).status, 401)
  const refused = await post('/sign-in/email', { email: bob.email, password: PASSWORD })
  assert.deepEqual(codeOf(refused), [403, 'PASSWORD_CHANGE_REQUIRED'])
  await t.mails()
})

test('a proven address allows its change by a code, and the new one completes it', async () => {
  const ada = await proven('Ada')
  const newEmail = `new-${ada.email}`
  const change = (more = {}) => ada.post(`${AUTH}/email-otp/request-email-change`, { newEmail, ...more })
  assert.deepEqual((await change()).body, { success: true })
  const [allow = '', ...none] = await t.mails()
  assert.ok(allow.includes(`To: ${ada.email}`) && none.length === 0)
  assert.deepEqual(codeOf(await change({ otp: otherThan(codeIn(allow)) })), WRONG)
  const elsewhere = { newEmail: `other-${ada.email}`, otp: codeIn(allow) }
  assert.deepEqual(codeOf(await ada.post(`${AUTH}/email-otp/request-email-change`, elsewhere)), WRONG)
  assert.equal((await change({ otp: codeIn(allow) })).status, 200)
  const mail = (await t.mails()).find((one) => one.includes(`To: ${newEmail}`)) ?? ''
  const done = (otp: string) => ada.post(`${AUTH}/email-otp/change-email`, { newEmail, otp })
  assert.deepEqual(codeOf(await done(otherThan(codeIn(mail)))), WRONG)
  assert.deepEqual((await done(codeIn(mail))).body, { success: true })
  assert.equal((await ada.get(`${AUTH}/get-session`)).body.user.email, newEmail)

  const { code } = await ask(newEmail, 'email-verification')
  const back = { newEmail: ada.email, otp: code }
  assert.equal((await ada.post(`${AUTH}/email-otp/request-email-change`, back)).status, 200)
  assert.ok((await t.mails()).some((one) => one.includes(`To: ${ada.email}`)))
})
