import assert from 'node:assert/strict'
import { browserMark } from '#auth/door/cookies.ts'
import { mailedCodeOwner } from '#auth/two-factor/checks.ts'
import { codeHashes } from '#auth/two-factor/codes.ts'
import { replaceMailedCode } from '#identity/mailed-codes.ts'
import { issueTicket } from '#identity/tickets.ts'
import { tokenHash } from '#identity/tokens.ts'
import { type Authenticator, createAuthenticator } from './authenticator.ts'
import { type Answer, PASSWORD, type TestService } from './harness.ts'
import { ceremoniesOf } from './passkeys.ts'
import { proveAddress } from './proven-address.ts'
import { cookiesOf, insertFactor, PENDING_COOKIE, SESSION_COOKIE } from './second-factor.ts'

const AUTH = '/api/auth'
/** The password after a reset. */
export const NEW_PASSWORD = 'another horse staple'
/** Of the factor of each person. */
export const BACKUP_CODE = 'k3x9p-m2q7w'
/** The mailed code that is put in its place. */
export const MAILED_CODE = '246802'
const BROWSER_MARK = 'mark of the browser'

export type Method = 'totp' | 'otp' | 'passkey'
export type Person = {
  readonly id: string
  readonly email: string
  /** The session of the sign-up, which has added the methods. */
  readonly signUp: string
  readonly methods: readonly Method[]
  /** Of the authenticator app. */
  readonly secret: string
  readonly authenticator: Authenticator
  password: string
}

/** Methods and token of a pending sign-in, or a session. Neither: the way in starts none. */
export type Entered = { readonly methods?: string; readonly pending?: string; readonly session?: string }
export type Enter = (person: Person) => Promise<Entered>

/** Signs a person in by the password, to this service or another one. */
export async function byPassword(
  { anon }: TestService,
  { email, password }: Pick<Person, 'email' | 'password'>,
  headers = {},
): Promise<Entered> {
  return enteredBy(await anon.post(`${AUTH}/sign-in/email`, { email, password }, { headers }))
}

function enteredBy(answer: Answer): Entered {
  assert.equal(answer.status, 200, answer.text)
  const { [PENDING_COOKIE]: pending, [SESSION_COOKIE]: session } = cookiesOf(answer)
  const methods: readonly string[] | undefined = answer.body.twoFactorMethods
  return {
    ...(methods && { methods: methods.join(' ') }),
    ...(pending && { pending }),
    ...(session && { session }),
  }
}

/** A user with a proven address and these methods beside the password. */
export async function personWith(t: TestService, methods: readonly Method[]): Promise<Person> {
  const user = await proveAddress(t, await t.signUp('Ada'))
  const authenticator = createAuthenticator()
  if (methods.includes('passkey')) await ceremoniesOf(t).register(user, authenticator)
  const signUp = (await user.get(`${AUTH}/get-session`)).body.session.id
  const secret = await addFactor(t, user, methods)
  await t.service.kernel.db
    .updateTable('twoFactor')
    .set({ addedBy: signUp })
    .where('userId', '=', user.id)
    .execute()
  return { ...user, signUp, methods, secret, authenticator, password: PASSWORD }
}

/** With one backup code. Returns the secret of an authenticator app. */
export async function addFactor(
  t: TestService,
  user: { readonly id: string },
  methods: readonly Method[],
): Promise<string> {
  const { kernel } = t.service
  const method = methods.find((each) => each !== 'passkey')
  if (method === undefined) return ''
  const secret = await insertFactor(t, user, method)
  const [codeHash] = codeHashes(kernel, 'backup', { owner: user.id, code: BACKUP_CODE })
  await kernel.db
    .insertInto('backupCode')
    .columns(['twoFactorId', 'codeHash'])
    .expression((of) =>
      of
        .selectFrom('twoFactor')
        .select(['id', (value) => value.val(codeHash).as('codeHash')])
        .where('userId', '=', user.id),
    )
    .execute()
  return secret
}

const ticketOf = ({ id: userId, email: address }: Person) =>
  ({ userId, address, sessionId: null, lifetime: 3_600_000, payload: {} }) as const

/** Sets NEW_PASSWORD by a link in a mail. */
export async function reset(t: TestService, person: Person): Promise<void> {
  const token = await issueTicket(t.service.kernel, 'reset-password', ticketOf(person))
  const answer = await t.anon.post(`${AUTH}/reset-password`, { token, newPassword: NEW_PASSWORD })
  assert.equal(answer.status, 200, answer.text)
  person.password = NEW_PASSWORD
}

/** The token of a link that proves the address for the first time, from the mail to the browser that signed up. */
export async function firstLink({ service: { kernel } }: TestService, person: Person): Promise<string> {
  const unproven = { emailVerified: false, emailProvenAt: null }
  await kernel.db.updateTable('user').set(unproven).where('id', '=', person.id).execute()
  const payload = { browser: browserMark(BROWSER_MARK), session: person.signUp }
  return issueTicket(kernel, 'verify-email', { ...ticketOf(person), payload })
}

type Doors = {
  readonly t: TestService
  /** Of the provider `acme`. */
  readonly idToken: (claims: Record<string, unknown>) => Promise<string>
}

/** Ways in, for a service with `sign_in_after_verification`. */
export function doorsOf({ t, idToken }: Doors) {
  const { db, now } = t.service.kernel
  /** An account at the provider that is linked to the person. */
  const byProvider =
    (claims: (person: Person) => Record<string, unknown>): Enter =>
    async (person) => {
      const [at, accountId] = [now(), `account-of-${person.id}`]
      const account = { id: person.id, userId: person.id, providerId: 'acme', accountId }
      await db
        .insertInto('account')
        .values({ ...account, createdAt: at, updatedAt: at })
        .onConflict((on) => on.doNothing())
        .execute()
      const token = await idToken({ sub: accountId, nonce: 'n', ...claims(person) })
      const asked = { provider: 'acme', idToken: { token, nonce: 'n' } }
      return enteredBy(await t.anon.post(`${AUTH}/sign-in/social`, asked))
    }
  return {
    'the password': (person) => byPassword(t, person),
    'a link in a mail': async (person) => {
      const token = await firstLink(t, person)
      const headers = { cookie: `service-auth.sign-up=${encodeURIComponent(BROWSER_MARK)}` }
      return enteredBy(await t.anon.get(`${AUTH}/verify-email?token=${token}`, { headers }))
    },
    'a reset by mail': async (person) => {
      if (person.password !== NEW_PASSWORD) await reset(t, person)
      return byPassword(t, person)
    },
    'a provider of the same mailbox': byProvider(({ email }) => ({ email, email_verified: true })),
    'a provider of another mailbox': byProvider(({ id }) => ({
      ...{ email: `other-${id}@example.com`, email_verified: true },
    })),
    'a provider that only claims the mailbox': byProvider(({ email }) => ({ email, email_verified: false })),
  } as const satisfies Record<string, Enter>
}

export type Door = keyof ReturnType<typeof doorsOf>

/** Puts MAILED_CODE into a session or a pending sign-in, as if it had been mailed. */
export async function plantCode(
  { service: { kernel } }: TestService,
  { id: userId, email: address }: Person,
  { pending = '', session }: Entered,
): Promise<void> {
  const { db, now } = kernel
  const ofSession = db.selectFrom('session').select('id')
  const found =
    session && (await ofSession.where('tokenHash', '=', tokenHash(session)).executeTakeFirstOrThrow())
  const sessionId = found ? found.id : null
  const subject = sessionId ?? tokenHash(pending.replace('2fa_', '')).toString('base64url')
  const owner = mailedCodeOwner(userId, { subject, sessionId, counters: [] })
  const [hash] = codeHashes(kernel, 'mail', { owner, code: MAILED_CODE })
  const times = { createdAt: now(), expiresAt: new Date(now().getTime() + 60_000) }
  await replaceMailedCode(db, { userId, sessionId, subject, address }, { hash, ...times })
}
