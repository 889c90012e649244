import assert from 'node:assert/strict'
import { type Authenticator, createAuthenticator, type Fault } from './authenticator.ts'
import type { Actor, Answer, TestService, User } from './harness.ts'

const PATH = '/api/auth/passkey'

export type Registration = { fault?: Fault; name?: string; revokeOtherSessions?: boolean }
export type PasskeyUser = {
  readonly user: User
  readonly authenticator: Authenticator
  readonly passkey: { readonly id: string }
}

/** The ceremonies of a service, in pages of one origin, with an authenticator in software. */
export type Ceremonies = {
  creationOptions(actor: Actor): Promise<Answer>
  requestOptions(actor: Actor): Promise<Answer>
  /** Asks for options, lets the authenticator answer, and sends the answer. */
  register(user: Actor, authenticator: Authenticator, more?: Registration): Promise<Answer>
  /** The same without a session. */
  signIn(authenticator: Authenticator, fault?: Fault): Promise<Answer>
  verify(ceremony: 'registration' | 'authentication', actor: Actor, body: object): Promise<Answer>
  /** A new user with a passkey. */
  newUser(name?: string): Promise<PasskeyUser>
  sessionsOf(user: User): Promise<number>
}

export function ceremoniesOf(t: TestService, origin = t.service.kernel.publicUrl()): Ceremonies {
  const { db } = t.service.kernel
  const ceremonies: Ceremonies = {
    creationOptions: (actor) => actor.get(`${PATH}/generate-register-options`),
    requestOptions: (actor) => actor.post(`${PATH}/generate-authenticate-options`),
    verify: (ceremony, actor, body) => actor.post(`${PATH}/verify-${ceremony}`, body),
    async register(user, authenticator, { fault, ...more } = {}) {
      const { body: options } = await ceremonies.creationOptions(user)
      const response = authenticator.create(options, origin, fault)
      return ceremonies.verify('registration', user, {
        response,
        challengeId: options.challengeId,
        ...more,
      })
    },
    async signIn(authenticator, fault) {
      const { body: options } = await ceremonies.requestOptions(t.anon)
      const response = authenticator.get(options, origin, fault)
      return ceremonies.verify('authentication', t.anon, { response, challengeId: options.challengeId })
    },
    async newUser(name = 'Ada') {
      const user = await t.signUp(name)
      const authenticator = createAuthenticator()
      const { status, body, text } = await ceremonies.register(user, authenticator)
      assert.equal(status, 200, text)
      return { user, authenticator, passkey: body }
    },
    sessionsOf: async ({ id }) =>
      (await db.selectFrom('session').select('id').where('userId', '=', id).execute()).length,
  }
  return ceremonies
}

/** Asserts status and code of an answer that starts no session. */
export function expectRefused(
  { status, body, headers }: Answer,
  expected: readonly [status: number, code: string],
): void {
  assert.deepEqual([status, body.code], expected)
  assert.equal(headers.get('set-auth-token'), null)
}
