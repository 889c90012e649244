import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { PASSWORD, testClock, testService } from '#test/harness.ts'
import { proveAddress } from '#test/proven-address.ts'
import {
  codeOf,
  cookiesOf,
  enrolOtp,
  enrolTotp,
  mailedCode,
  PENDING_COOKIE,
  pendingSignIn,
  SESSION_COOKIE,
  wrongCode,
} from '#test/second-factor.ts'

// A stopped clock, so that no code expires on a slow machine.
const t = await testService({ clock: testClock({ isStopped: true }) })
const { db } = t.service.kernel
const AUTH = '/api/auth'

const sessionsOf = async ({ id }: { id: string }) =>
  (await db.selectFrom('session').select('id').where('userId', '=', id).execute()).length
const verifyTotp = (token: string, code: string, more = {}) =>
  t.anon.post(`${AUTH}/two-factor/verify-totp`, { code, token, ...more })

test('a sign-in with a second factor is pending: no session, no session cookie, and a token that opens nothing else', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const before = await sessionsOf(ada)
  const pending = await pendingSignIn(t.anon, ada.email, { cookie: `${SESSION_COOKIE}=stale` })
  const { token, ...rest } = pending.body
  assert.deepEqual(rest, {
    ...{ twoFactorRedirect: true, twoFactorMethods: ['totp', 'otp'], redirect: false, url: null },
  })
  assert.match(token, /^2fa_[\w-]{43}$/)
  const cookies = cookiesOf(pending)
  assert.deepEqual(cookies, { [SESSION_COOKIE]: '', [PENDING_COOKIE]: token })
  assert.match(
    pending.headers.getSetCookie().find((cookie) => cookie.startsWith(PENDING_COOKIE)) ?? '',
    /Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax/,
  )
  assert.equal(pending.headers.get('set-auth-token'), null)
  assert.equal(await sessionsOf(ada), before)
  for (const shown of [token, token.slice(4)]) {
    const headers = { authorization: `Bearer ${shown}`, cookie: `${SESSION_COOKIE}=${shown}` }
    for (const path of ['get-session', 'list-sessions'])
      assert.equal((await t.anon.get(`${AUTH}/${path}`, { headers })).status, 401)
    const password = { password: PASSWORD }
    assert.equal((await t.anon.post(`${AUTH}/two-factor/disable`, password, { headers })).status, 401)
  }
})

test('the pending token comes in the body, as Bearer or as cookie, in this order, and a success removes the cookie', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const bob = await enrolTotp(t, await t.signUp('Bob'))
  const ways = [
    (token: string, code: string) =>
      t.anon.post(
        `${AUTH}/two-factor/verify-totp`,
        { code, token },
        { headers: { cookie: `${PENDING_COOKIE}=2fa_x` } },
      ),
    (token: string, code: string) =>
      t.anon.post(
        `${AUTH}/two-factor/verify-totp`,
        { code },
        {
          headers: { authorization: `Bearer ${token}`, cookie: `${PENDING_COOKIE}=2fa_x` },
        },
      ),
    // The cookie comes before the session of another user.
    (token: string, code: string) =>
      t.anon.post(
        `${AUTH}/two-factor/verify-totp`,
        { code },
        {
          headers: { authorization: `Bearer ${bob.token}`, cookie: `${PENDING_COOKIE}=${token}` },
        },
      ),
  ]
  for (const verify of ways) {
    const { token } = (await pendingSignIn(t.anon, ada.email)).body
    const verified = await verify(token, codeOf(t, ada.secret))
    t.advance(30_000)
    assert.deepEqual([verified.status, verified.body.user?.id], [200, ada.id], verified.text)
    const { 'service-auth.known-device': _device, ...cookies } = cookiesOf(verified)
    assert.deepEqual(cookies, { [SESSION_COOKIE]: verified.body.token, [PENDING_COOKIE]: '' })
    assert.equal((await verifyTotp(token, codeOf(t, ada.secret))).body.code, 'INVALID_TWO_FACTOR_COOKIE')
  }
  const none = await t.anon.post(`${AUTH}/two-factor/verify-totp`, { code: '000000' })
  assert.deepEqual([none.status, none.body.code], [401, 'INVALID_TWO_FACTOR_COOKIE'])
  const dead = await t.anon.post(
    `${AUTH}/two-factor/send-otp`,
    {},
    { headers: { cookie: `${PENDING_COOKIE}=2fa_x` } },
  )
  assert.deepEqual([dead.body.code, cookiesOf(dead)], ['INVALID_TWO_FACTOR_COOKIE', { [PENDING_COOKIE]: '' }])
})

test('a pending sign-in ends after 10 minutes, and keeps what was asked with it', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const late = (await pendingSignIn(t.anon, ada.email)).body.token
  t.advance(600_000)
  assert.equal((await verifyTotp(late, codeOf(t, ada.secret))).body.code, 'INVALID_TWO_FACTOR_COOKIE')
  const { body } = await t.anon.post(`${AUTH}/sign-in/email`, {
    ...{ email: ada.email, password: PASSWORD, rememberMe: false, callbackURL: '/home' },
  })
  assert.deepEqual([body.redirect, body.url], [false, null])
  const verified = await verifyTotp(body.token, codeOf(t, ada.secret))
  const [cookie = ''] = verified.headers.getSetCookie()
  assert.match(cookie, /^service-auth\.session-token=/)
  assert.doesNotMatch(cookie, /Max-Age/, 'the session ends with the browser')
})

test('a code of the app is accepted once, also across sign-ins, in a window of one step around now', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const outcome = async (code: string) => {
    const { token } = (await pendingSignIn(t.anon, ada.email)).body
    const { status, body } = await verifyTotp(token, code)
    return body.code ?? status
  }
  t.advance(300_000)
  assert.equal(await outcome(codeOf(t, ada.secret, -2)), 'INVALID_CODE')
  assert.equal(await outcome(codeOf(t, ada.secret, 2)), 'INVALID_CODE')
  assert.equal(await outcome(codeOf(t, ada.secret, -1)), 200)
  const code = codeOf(t, ada.secret)
  assert.equal(await outcome(code), 200)
  assert.equal(await outcome(code), 'INVALID_CODE', 'used')
  const next = codeOf(t, ada.secret, 1)
  assert.equal(await outcome(next), 200)
  t.advance(30_000)
  assert.equal(await outcome(next), 'INVALID_CODE', 'used a step ago')
  assert.equal(await outcome(code), 'INVALID_CODE', 'of an older step')
})

test('a code by mail works once, for 3 minutes, five tries and the sign-in that asked for it', async () => {
  const ada = await enrolOtp(t, await t.signUp('Ada'))
  const begin = async () => {
    const { token, twoFactorMethods } = (await pendingSignIn(t.anon, ada.email)).body
    assert.deepEqual(twoFactorMethods, ['otp'])
    assert.equal((await t.anon.post(`${AUTH}/two-factor/send-otp`, { token })).status, 200)
    return { token, code: mailedCode(await t.mails()) }
  }
  const outcome = async (token: string, code: string) => {
    const { status, body } = await t.anon.post(`${AUTH}/two-factor/verify-otp`, { token, code })
    return body.code ?? status
  }
  const one = await begin()
  assert.equal(await outcome(one.token, one.code), 200)
  const two = await begin()
  const other = await begin()
  assert.equal(await outcome(two.token, other.code), 'INVALID_CODE')
  assert.equal(await outcome(two.token, two.code), 200)
  assert.equal(await outcome(other.token, one.code), 'INVALID_CODE', 'used')
  t.advance(180_000)
  assert.equal(await outcome(other.token, other.code), 'OTP_HAS_EXPIRED')

  const last = await begin()
  await t.anon.post(`${AUTH}/two-factor/send-otp`, { token: last.token })
  const newer = mailedCode(await t.mails())
  if (newer !== last.code) assert.equal(await outcome(last.token, last.code), 'INVALID_CODE', 'replaced')
  for (let tries = 0; tries < 4; tries++) await outcome(last.token, last.code)
  assert.equal(await outcome(last.token, newer), 'TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE')
  assert.equal(await outcome(last.token, newer), 'INVALID_TWO_FACTOR_COOKIE')
})

test('a backup code works once, and new ones replace the old ones', async () => {
  const ada = await enrolTotp(t, await proveAddress(t, await t.signUp('Ada')))
  const [first = '', second = ''] = ada.backupCodes
  const outcome = async (code: string, more = {}) => {
    const { token } = (await pendingSignIn(t.anon, ada.email)).body
    return t.anon.post(`${AUTH}/two-factor/verify-backup-code`, { token, code, ...more })
  }
  const verified = await outcome(first.toUpperCase().replace('-', ' '))
  const { token, user, session, status } = verified.body
  assert.deepEqual([verified.status, status, user.id], [200, true, ada.id])
  assert.deepEqual(Object.keys(session).toSorted(), ['createdAt', 'expiresAt', 'token', 'userId'])
  assert.deepEqual([session.token, session.userId], [token, ada.id])
  assert.equal((await outcome(first)).body.code, 'INVALID_BACKUP_CODE')

  const silent = await outcome(second, { disableSession: true })
  assert.equal(cookiesOf(silent)[SESSION_COOKIE], undefined)
  assert.equal(silent.headers.get('set-auth-token'), silent.body.token)

  await t.mails()
  const renewed = await ada.post(`${AUTH}/two-factor/generate-backup-codes`, { password: PASSWORD })
  assert.equal(renewed.body.backupCodes.length, 10)
  assert.match((await t.mails()).at(-1) ?? '', /backup codes of your account were replaced/)
  assert.equal((await outcome(ada.backupCodes[2] ?? '')).body.code, 'INVALID_BACKUP_CODE')
  assert.equal((await outcome(renewed.body.backupCodes[0])).status, 200)
})

test('five wrong codes end a pending sign-in, ten lock the second factor for 15 minutes', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const wrong = wrongCode(t, ada.secret)
  const spend = async () => {
    const { token } = (await pendingSignIn(t.anon, ada.email)).body
    for (let tries = 0; tries < 5; tries++)
      assert.equal((await verifyTotp(token, wrong)).body.code, 'INVALID_CODE')
    return token
  }
  const spent = await spend()
  assert.equal(
    (await verifyTotp(spent, codeOf(t, ada.secret))).body.code,
    'TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE',
    'the right code comes too late',
  )
  const locked = await spend()
  for (const token of [locked, (await pendingSignIn(t.anon, ada.email)).body.token]) {
    const refused = await verifyTotp(token, codeOf(t, ada.secret))
    assert.deepEqual([refused.status, refused.body.code], [429, 'ACCOUNT_TEMPORARILY_LOCKED'])
    assert.equal(refused.headers.get('retry-after'), '900')
  }
  const { token } = (await pendingSignIn(t.anon, ada.email)).body
  const backup = { token, code: ada.backupCodes[0] }
  assert.equal((await t.anon.post(`${AUTH}/two-factor/verify-backup-code`, backup)).status, 429)
  assert.equal((await t.anon.post(`${AUTH}/two-factor/send-otp`, { token })).status, 429)
  t.advance(900_000)
  const after = (await pendingSignIn(t.anon, ada.email)).body.token
  assert.equal((await verifyTotp(after, codeOf(t, ada.secret))).status, 200)
})

test('a page of a foreign origin can neither ask for a code nor complete a sign-in with the cookie of a pending one', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const { token } = (await pendingSignIn(t.anon, ada.email)).body
  await t.mails()
  const code = codeOf(t, ada.secret)
  const foreign = { cookie: `${PENDING_COOKIE}=${token}`, origin: 'https://evil.example' }
  for (const path of ['send-otp', 'verify-totp', 'verify-otp', 'verify-backup-code']) {
    const refused = await t.anon.post(`${AUTH}/two-factor/${path}`, { code }, { headers: foreign })
    assert.deepEqual([refused.status, refused.body.code], [403, 'INVALID_ORIGIN'], path)
  }
  assert.deepEqual(await t.mails(), [])
  const headers = { ...foreign, origin: t.service.kernel.publicUrl() }
  assert.equal((await t.anon.post(`${AUTH}/two-factor/verify-totp`, { code }, { headers })).status, 200)
})

test('a pending sign-in ends when a way in of the user goes', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const [id, createdAt] = [randomUUID(), t.service.kernel.now()]
  const account = {
    id,
    userId: ada.id,
    providerId: 'github',
    accountId: 'ada',
    createdAt,
    updatedAt: createdAt,
  }
  await db.insertInto('account').values(account).execute()
  const passkey = {
    ...{ id, userId: ada.id, createdAt, name: 'Key', credentialId: 'key', publicKey: 'key' },
    ...{ counter: '0', deviceType: 'singleDevice', backedUp: false, transports: '', aaguid: randomUUID() },
  }
  await db.insertInto('passkey').values(passkey).execute()
  for (const [path, body] of [
    ['unlink-account', { providerId: 'github' }],
    ['passkey/delete-passkey', { id }],
  ] as const) {
    const { token } = (await pendingSignIn(t.anon, ada.email)).body
    const removed = await ada.post(`${AUTH}/${path}`, body)
    assert.equal(removed.status, 200, removed.text)
    const { status } = await verifyTotp(token, codeOf(t, ada.secret))
    assert.equal(status, 401, path)
  }
})
