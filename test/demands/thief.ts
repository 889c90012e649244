import type { SignInContext } from '#auth/door/sign-in-context.ts'
import { reauthenticateByProvider } from '#auth/reauthenticate/reauthenticate.ts'
import { enter } from '#auth/social/enter.ts'
import { linkIdentity } from '#auth/social/link.ts'
import { Failure } from '#kernel/errors.ts'
import { createAuthenticator } from '#test/authenticator.ts'
import type { Answer, TestService } from '#test/harness.ts'
import { ceremoniesOf } from '#test/passkeys.ts'
import { deviceToken } from '#test/proof-races/devices.ts'
import type { TestUser } from '#test/proof-races/user-state.ts'
import { PASSWORDS } from '#test/proof-races/user-state.ts'

/** Holds a session of the person, and nothing that the person knows or has: only what that session can be made to give. */
export type Thief = {
  readonly person: TestUser
  post(path: string, body?: object): Promise<Answer>
  get(path: string): Promise<Answer>
  /** Registers a passkey of the thief's own. */
  addPasskey(): Promise<void>
  /** Links an account of the thief's own. */
  linkAccount(): Promise<void>
  /** Goes on in a session that begins with the passkey, or with the account, that has been added. */
  signInAnew(by: 'passkey' | 'account'): Promise<void>
  /** Goes on in a session that begins with a one-time token of this one. */
  deriveSession(): Promise<void>
  /** Goes on in the session of a device that the session has approved. */
  goOnAsDevice(): Promise<void>
  /** Shows in the session whatever has been added to the account or learned of it, as a proof. */
  reauthenticate(): Promise<void>
}

/** Of a browser that nothing is known about. */
export const SIGN_IN: SignInContext = {
  ...{ ipAddress: '192.0.2.1', userAgent: undefined, remember: true, isCrossSite: false },
  ...{ callbackURL: undefined, trustedDevice: undefined, knownDevice: undefined, markBrowser: () => {} },
}

export function createThief(t: TestService, person: TestUser): Thief {
  const { kernel } = t.service
  let { token } = person.sessions.S
  const codes: string[] = []
  const authenticator = createAuthenticator()
  const account = { providerId: 'github', accountId: `thief of ${person.id}` }
  const identity = {
    ...{ accountId: account.accountId, email: person.email, emailVerified: true },
    ...{ name: 'Thief', image: null, tokens: {} },
  }
  const proof = { userId: person.id, session: { id: person.sessions.S.id } }
  const headers = () => ({ authorization: `Bearer ${token}` })
  const noting = (answer: Answer): Answer => {
    token = answer.headers.get('set-auth-token') ?? token
    codes.push(...((answer.body?.backupCodes as string[] | undefined) ?? []))
    return answer
  }
  const post: Thief['post'] = async (path, body = {}) =>
    noting(await t.anon.post(`/api/auth${path}`, body, { headers: headers() }))
  const get: Thief['get'] = async (path) =>
    noting(await t.anon.get(`/api/auth${path}`, { headers: headers() }))
  const passkeys = ceremoniesOf(t)
  const asUser = {
    headers: {},
    send: t.anon.send,
    get: (path: string) => get(strip(path)),
    post: (path: string, body?: unknown) => post(strip(path), Object(body)),
  }
  return {
    ...{ person, post, get },
    async addPasskey() {
      const { body, status } = await passkeys.creationOptions(asUser)
      if (status !== 200) return
      const response = authenticator.create(body, kernel.publicUrl())
      await passkeys.verify('registration', asUser, { response, challengeId: body.challengeId })
    },
    async signInAnew(by) {
      if (by === 'passkey' && authenticator.credentials.length === 0) return
      if (by === 'passkey') {
        const { body } = await passkeys.signIn(authenticator)
        token = body.token ?? token
      } else {
        // With the owner's address the provider would link by itself what could not be linked.
        const own = { ...identity, email: undefined }
        const entering = { provider: account.providerId, identity: own, requestSignUp: false }
        const entered = await orRefused(enter(kernel, entering, SIGN_IN))
        if (entered !== undefined && 'token' in entered.admission) token = entered.admission.token
      }
    },
    async goOnAsDevice() {
      const asked = await post('/device/code', { client_id: 'tv' })
      await post('/device/approve', { userCode: asked.body.user_code })
      await post('/device/token', deviceToken(asked.body.device_code))
    },
    async linkAccount() {
      const refuse = () => new Failure('STATE_MISMATCH', 400, 'the session is gone')
      await orRefused(linkIdentity(kernel, { proof, refuse, provider: account.providerId, identity }))
    },
    async deriveSession() {
      const { body } = await get('/one-time-token/generate')
      await post('/one-time-token/verify', { token: body?.token ?? 'none' })
    },
    async reauthenticate() {
      await post('/reauthenticate', { password: PASSWORDS.set })
      for (const code of codes.slice(-1)) await post('/reauthenticate', { code })
      const [credential] = authenticator.credentials
      if (credential !== undefined) {
        const { body: options } = await passkeys.requestOptions(t.anon)
        const response = authenticator.get({ ...options, allowCredentials: undefined }, kernel.publicUrl())
        await post('/reauthenticate', { response, challengeId: options.challengeId })
      }
      const shown = await orRefused(reauthenticateByProvider(kernel, { ...proof, account }))
      token = shown?.token ?? token
    },
  }
}

const strip = (path: string): string => path.replace('/api/auth', '')

async function orRefused<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call
  } catch (error) {
    if (error instanceof Failure) return undefined
    throw error
  }
}
