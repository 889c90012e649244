import assert from 'node:assert/strict'
import { Secret, TOTP } from 'otpauth'
import { newTotpSecret } from '#auth/two-factor/totp.ts'
import { uuidv7 } from '#kernel/random.ts'
import { type Actor, type Answer, actor, PASSWORD, type TestService, type User } from './harness.ts'

/** A user with an authenticator app. */
export type Enrolled = User & { readonly secret: string; readonly backupCodes: readonly string[] }

export const secretIn = (totpURI: string): string => new URL(totpURI).searchParams.get('secret') ?? ''

/** How long an authenticator app shows a code, milliseconds. */
const STEP = 30_000
/** More than a request takes, so that no step ends between a code and its use. */
const REST = 3_000

/** The code that an authenticator app shows now, or some steps later. The clock is turned past the rest of a step that is about to end. */
export function codeOf({ service, advance }: TestService, secret: string, steps = 0): string {
  const left = STEP - (service.kernel.now().getTime() % STEP)
  if (left < REST) advance(left)
  const timestamp = service.kernel.now().getTime() + steps * STEP
  return new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp })
}

/** A code that is wrong now. */
export const wrongCode = (t: TestService, secret: string): string => {
  const right = [-1, 0, 1].map((steps) => codeOf(t, secret, steps))
  return ['000000', '111111', '222222', '333333'].find((code) => !right.includes(code)) ?? ''
}

const bearer = (user: User, token: string): User => ({
  ...user,
  token,
  headers: { authorization: `Bearer ${token}` },
  get: (path, ask) => user.get(path, withToken(token, ask)),
  post: (path, body, ask) => user.post(path, body, withToken(token, ask)),
  send: (method, path, ask) => user.send(method, path, withToken(token, ask)),
})
const withToken = (token: string, ask: { headers?: Record<string, string> } = {}) => ({
  ...ask,
  headers: { authorization: `Bearer ${token}`, ...ask.headers },
})

/** Sets up an authenticator app. The next code is 30 seconds later, since this one is used up. */
export async function enrolTotp(t: TestService, user: User): Promise<Enrolled> {
  const begun = await user.post('/api/auth/two-factor/enable', { password: PASSWORD })
  assert.equal(begun.status, 200, begun.text)
  const secret = secretIn(begun.body.totpURI)
  const verified = await user.post('/api/auth/two-factor/verify-totp', { code: codeOf(t, secret) })
  assert.equal(verified.status, 200, verified.text)
  t.advance(STEP)
  return { ...bearer(user, verified.body.token), secret, backupCodes: begun.body.backupCodes }
}

/** Gives the user a factor directly, without the requests of a set-up. Returns the secret of an authenticator app. */
export async function insertFactor(
  { service: { kernel } }: TestService,
  { id: userId }: { readonly id: string },
  method: 'totp' | 'otp' = 'totp',
): Promise<string> {
  const [id, createdAt] = [uuidv7(kernel.now(), kernel.random), kernel.now()]
  const secret = newTotpSecret(kernel.random)
  const sealed = method === 'totp' ? kernel.secrets.seal('two-factor-secret', secret, userId) : null
  const factor = { id, userId, method, inForce: true, secret: sealed, createdAt }
  await kernel.db.insertInto('twoFactor').values(factor).execute()
  await kernel.db.updateTable('user').set({ twoFactorEnabled: true }).where('id', '=', userId).execute()
  await kernel.coherence.settle()
  return secret
}

/** The user has a second factor from now on, and has shown it in every session; or has none any more. */
export async function setFactor(
  { service: { kernel } }: TestService,
  { id }: { readonly id: string },
  twoFactorEnabled: boolean,
): Promise<void> {
  await kernel.db.updateTable('user').set({ twoFactorEnabled }).where('id', '=', id).execute()
  const own = kernel.db.updateTable('session').where('userId', '=', id).where('impersonatedBy', 'is', null)
  if (twoFactorEnabled) await own.set({ shown: ['password', 'totp'] }).execute()
  await kernel.coherence.settle()
}

/** Sets up codes by mail. */
export async function enrolOtp(t: TestService, user: User): Promise<Enrolled> {
  const begun = await user.post('/api/auth/two-factor/enable', { password: PASSWORD, method: 'otp' })
  assert.equal(begun.status, 200, begun.text)
  await user.post('/api/auth/two-factor/send-otp')
  const verified = await user.post('/api/auth/two-factor/verify-otp', { code: mailedCode(await t.mails()) })
  assert.equal(verified.status, 200, verified.text)
  await t.mails()
  return { ...bearer(user, verified.body.token), secret: '', backupCodes: begun.body.backupCodes }
}

/** The code in the only mail that has one. */
export function mailedCode(mails: readonly string[]): string {
  const codes = mails.flatMap((mail) => /your code is (\d{6})/.exec(mail)?.[1] ?? [])
  assert.equal(codes.length, 1, `not one code in:\n${mails.join('\n')}`)
  return codes[0] ?? ''
}

/** Signs in with the password; the answer is pending. */
export async function pendingSignIn(actor: Actor, email: string, headers = {}): Promise<Answer> {
  const answer = await actor.post('/api/auth/sign-in/email', { email, password: PASSWORD }, { headers })
  assert.equal(answer.status, 200, answer.text)
  return answer
}

/** A new session by the password, of a user without a second factor. */
export async function signedInAs(t: TestService, email: string, password = PASSWORD): Promise<Actor> {
  const { body, text } = await t.anon.post('/api/auth/sign-in/email', { email, password })
  assert.equal(body.twoFactorRedirect, undefined, text)
  return actor(t.url, { authorization: `Bearer ${body.token}` })
}

/** The cookies that an answer sets, by name. An empty value: it is removed. */
export const cookiesOf = ({ headers }: Answer): Readonly<Record<string, string>> =>
  Object.fromEntries(
    headers.getSetCookie().map((cookie) => {
      const [pair = ''] = cookie.split(';')
      return [pair.slice(0, pair.indexOf('=')), decodeURIComponent(pair.slice(pair.indexOf('=') + 1))]
    }),
  )

export const PENDING_COOKIE = 'service-auth.two-factor'
export const TRUSTED_COOKIE = 'service-auth.trusted-device'
export const SESSION_COOKIE = 'service-auth.session-token'
