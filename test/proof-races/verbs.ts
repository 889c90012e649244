import { Secret, TOTP } from 'otpauth'
import { banByOperator, setRoleByOperator, unbanByOperator } from '#auth/admin/operator.ts'
import type { SignInContext } from '#auth/door/sign-in-context.ts'
import { mailVerification } from '#auth/email/verification.ts'
import { fail } from '#auth/errors.ts'
import { setPasswordByOperator } from '#auth/password/password.ts'
import { mailReset } from '#auth/password/reset.ts'
import { deleteByOperator } from '#auth/profile/delete-account.ts'
import { reauthenticateByProvider } from '#auth/reauthenticate/reauthenticate.ts'
import { enter } from '#auth/social/enter.ts'
import type { Identity } from '#auth/social/identity.ts'
import { linkIdentity } from '#auth/social/link.ts'
import { rehashPassword } from '#identity/passwords.ts'
import { PASSWORD, type TestService } from '#test/harness.ts'
import { deviceToken } from './devices.ts'
import { BACKUP_CODE, NO_FACTOR, TOTP_SECRETS, WITH_FACTOR } from './second-factor.ts'
import { MAILED_CODE, newAddress, PASSWORDS, type TestUser, type UserState, type Who } from './user-state.ts'

/** Status and code of an error response. */
export type Refusal = readonly [number, string]

/** A request, or a direct call for operations without a route. */
export type Action =
  | {
      readonly method: 'GET' | 'POST'
      readonly path: string
      readonly body?: object
      /** The session whose token it sends. `admin`: that of an admin who is another user. */
      readonly session?: Who | 'admin'
    }
  | { readonly call: (t: TestService) => Promise<unknown> }

/** One operation on a user: its preconditions and its effect. A new feature adds its operations here. */
export type Verb = {
  /** Differences of the initial state. Tickets are added to those of START. */
  readonly start?: Partial<UserState>
  /** Whether the sessions are older than `session.fresh_age`. */
  readonly stale?: true
  readonly action: (person: TestUser, me: Who) => Action
  /** The expected error for a user in state `now`, whose state was `before` at the access check. Undefined on success. */
  readonly refused: (now: UserState, me: Who, before: UserState) => Refusal | undefined
  /** The user's state after success, whose state was `begun` when the sessions began. */
  readonly leaves: (state: UserState, me: Who, begun: UserState) => UserState
  /** If it is also a revoking column: the session that calls it, against a row that acts from session S. */
  readonly column?: Who
  /** The column that revokes the same things, so that this verb need not be a column. */
  readonly revokesAs?: string
  /** It needs fresh sessions, so it has no pair with a verb whose sessions are stale. */
  readonly needsFresh?: true
  /** It is refused under the lock of the user's row, not before. */
  readonly refusedLate?: true
}

const AUTH = '/api/auth'
const post = (path: string, body: object, session?: Who | 'admin'): Action =>
  session === undefined
    ? { method: 'POST', path: `${AUTH}${path}`, body }
    : { method: 'POST', path: `${AUTH}${path}`, body, session }
const get = (path: string, session?: Who): Action =>
  session === undefined
    ? { method: 'GET', path: `${AUTH}${path}` }
    : { method: 'GET', path: `${AUTH}${path}`, session }
/** Expected errors, by precondition. */
const alive = ({ user, sessions }: UserState, me: Who): Refusal | undefined =>
  user === 'there' && sessions.includes(me) ? undefined : [401, 'UNAUTHORIZED']
const sameHash =
  (refusal: Refusal) =>
  ({ user, password }: UserState, before: UserState): Refusal | undefined =>
    user !== 'gone' && password === before.password ? undefined : refusal
const open =
  (ticket: string, refusal: Refusal) =>
  ({ user, tickets, address }: UserState): Refusal | undefined =>
    user === 'there' && tickets.includes(ticket) && (address === 'own' || ticket.startsWith('change-email'))
      ? undefined
      : refusal
const withAssignedPassword = (state: UserState): UserState =>
  noTickets({
    ...state,
    password: 'set',
    mustChange: false,
    trusted: false,
    factorBegun: false,
    sessions: [],
  })

const exists = ({ user }: UserState): Refusal | undefined =>
  user === 'gone' ? [404, 'NOT_THERE'] : undefined

const isThere = ({ user }: UserState): Refusal | undefined =>
  user === 'gone' ? [404, 'USER_NOT_FOUND'] : undefined
const isStillAdmin =
  (code: string) =>
  ({ role }: UserState): Refusal | undefined =>
    role === 'admin' ? undefined : [403, code]

/** Effects. */
const without = (list: readonly string[], ...names: string[]) => list.filter((name) => !names.includes(name))
const adding = (list: readonly string[], ...names: string[]) => [...list, ...names].toSorted()
const noTickets = (state: UserState): UserState => ({ ...state, tickets: [] })
const ended = (state: UserState, ...who: string[]): UserState => ({
  ...state,
  sessions: without(state.sessions, ...who, ...who.map((one) => `new from ${one}`)),
  tickets: state.tickets.filter((name) => !who.some((one) => name.endsWith(` of ${one}`))),
})
const other = (me: Who): Who => (me === 'S' ? 'O' : 'S')
const deleted = (state: UserState): UserState => ({ ...state, user: 'gone' })
/** The first proof of an address removes everything that was added before it, which may be another person's. */
const firstProof = (state: UserState): UserState =>
  state.verified ? state : { ...state, ...NO_FACTOR, verified: true, linked: false, passkeys: [] }
const withoutUnprovenAccess = (state: UserState): UserState =>
  noTickets({ ...firstProof(state), sessions: [] })
const redeemed = (state: UserState, ticket: string): UserState => ({
  ...state,
  tickets: without(state.tickets, ticket),
})
/** A link alone does not prove who set the password, so the password must be changed. */
const provenByLink = (state: UserState): UserState =>
  state.verified
    ? redeemed(state, 'verify-email')
    : { ...withoutUnprovenAccess(state), mustChange: state.password !== null }
/**
 * The owner of the password has proven the address: in a session, which stays, or without one. The account that the user was added with
 * stays, and everything else at the start was added by neither session.
 */
const provenByOwner = (state: UserState, ...sessions: Who[]): UserState =>
  state.verified
    ? redeemed(state, 'verify-email')
    : noTickets({ ...state, ...NO_FACTOR, verified: true, passkeys: [], sessions })
/** A link to an address that was already verified does not sign in. */
const signedInAtFirstProof = (before: UserState, after: UserState): UserState =>
  before.verified ? after : admitted(after)
const withNewSession = (state: UserState): UserState => ({
  ...state,
  sessions: adding(state.sessions, 'new'),
})
/** A session, or a sign-in that waits for the second factor. */
const admitted = (state: UserState): UserState =>
  state.factor === 'none'
    ? withNewSession(state)
    : { ...state, tickets: adding(state.tickets, 'second-factor') }

/** The account gets an address that may not belong to the person who set the password. */
const takenOver = (state: UserState, me: Who): UserState =>
  noTickets({
    ...{ ...state, ...NO_FACTOR, address: `new of ${me}`, verified: true },
    ...{ linked: false, passkeys: [], sessions: [] },
  })

const passwordReset = (state: UserState): UserState => ({
  ...withoutUnprovenAccess(state),
  ...{ password: 'reset', mustChange: false, trusted: false, factorBegun: false },
})

const linkedAlive = (now: UserState, me: Who): Refusal | undefined =>
  alive(now, me) ?? (now.linked ? undefined : [404, 'ACCOUNT_NOT_FOUND'])

const NO_PASSWORD: Refusal = [400, 'CREDENTIAL_ACCOUNT_NOT_FOUND']
const WRONG: Refusal = [400, 'INVALID_PASSWORD']
const TO_CHANGE: Refusal = [403, 'PASSWORD_CHANGE_REQUIRED']
const isFirst = ({ password }: UserState): boolean => password === 'first' || password === 'old form'

/** Precondition of a caller with a session and the first password, which is checked against the hash of `before`. */
const aliveWithPassword = (now: UserState, me: Who, before: UserState): Refusal | undefined => {
  const ended = alive(now, me)
  if (ended !== undefined) return ended
  if (before.password === null) return NO_PASSWORD
  if (!isFirst(before)) return WRONG
  if (before.mustChange) return TO_CHANGE
  return now.mustChange ? [401, 'UNAUTHORIZED'] : sameHash([401, 'UNAUTHORIZED'])(now, before)
}

/** The same where a fresh session is enough for a user without a password. */
const aliveAsOwner = (now: UserState, me: Who, before: UserState): Refusal | undefined =>
  before.password === null ? alive(now, me) : aliveWithPassword(now, me, before)

/** Precondition of a link and the first password, without a session. */
const openWithPassword =
  (ticket: string, refusal: Refusal) =>
  (now: UserState, _me: Who, before: UserState): Refusal | undefined => {
    const closed = open(ticket, BAD_LINK)(before) ?? open(ticket, refusal)(now)
    if (closed !== undefined) return closed
    if (!isFirst(before)) return WRONG
    if (before.mustChange) return TO_CHANGE
    return now.mustChange ? WRONG : sameHash(WRONG)(now, before)
  }

/** A new hash of the same password does not prevent a sign-in. */
const signsIn = (now: UserState, _me: Who, before: UserState): Refusal | undefined => {
  const same =
    now.password === before.password || (before.password === 'old form' && now.password === 'first')
  if (now.user === 'gone' || now.password === null || !same) return [401, 'INVALID_EMAIL_OR_PASSWORD']
  if (now.user === 'banned') return [403, 'BANNED_USER']
  return now.mustChange ? TO_CHANGE : undefined
}
const signedIn = (state: UserState): UserState => ({
  ...admitted(state),
  password: state.password === 'old form' ? 'first' : state.password,
})
const BAD_LINK: Refusal = [401, 'INVALID_TOKEN']
const BAD_RESET: Refusal = [400, 'INVALID_TOKEN']
const BAD_HANDOFF: Refusal = [400, 'INVALID_HANDOFF_CODE']
const BAD_CODE: Refusal = [400, 'INVALID_OTP']
const enteredByMail = (state: UserState): UserState => redeemed(admitted(firstProof(state)), 'sign-in')
const CHANGES = (['S', 'O'] as const).flatMap((who) => [
  `change-email of ${who}`,
  `confirm-change-email of ${who}`,
])

const LAST_WAY_IN: Refusal = [400, 'FAILED_TO_UNLINK_LAST_ACCOUNT']
const NO_CHALLENGE: Refusal = [400, 'CHALLENGE_NOT_FOUND']
const REGISTRATIONS = ['passkey-registration of O', 'passkey-registration of S']
/** Passkeys besides the first one, which may have another name by now. */
const addedPasskeys = ({ passkeys }: UserState) => passkeys.filter((name) => name === 'new')
const hasFirstPasskey = (state: UserState) => addedPasskeys(state).length < state.passkeys.length
const passkeyAdded = (state: UserState, me: Who): UserState => ({
  ...redeemed(state, `passkey-registration of ${me}`),
  passkeys: adding(state.passkeys, 'new'),
  trusted: false,
})

const reauthenticated = (state: UserState, me: Who): UserState => ({
  ...state,
  sessions: state.sessions.map((name) => (name === me ? `${me} renewed` : name)).toSorted(),
})
const withoutBackupCode = ({ backupCodes }: UserState): Refusal | undefined =>
  backupCodes === 1 ? undefined : [401, 'INVALID_BACKUP_CODE']
const NOT_PENDING: Refusal = [401, 'INVALID_TWO_FACTOR_COOKIE']
const codeNow = (name: keyof typeof TOTP_SECRETS): string =>
  new TOTP({ secret: Secret.fromBase32(TOTP_SECRETS[name]) }).generate()
/** A code for the second factor, without one that was begun, is one for the first. */
const withoutBegunFactor = ({ factor }: UserState): Refusal =>
  factor === 'first' ? [401, 'INVALID_CODE'] : [400, 'TOTP_NOT_ENABLED']
/** A device would begin with a session that has shown what the account has no more. */
const withoutApprovals = (state: UserState): UserState =>
  redeemed(redeemed(state, 'device-session of S'), 'device-session of O')
const factorChanged = (state: UserState): UserState => ({
  ...redeemed(redeemed(state, 'second-factor'), 'second-factor-code'),
  trusted: false,
})

/** The user's account at a provider, as in `createUsers`. */
const identityOf = (accountId: string, email: string): Identity => ({
  ...{ accountId, email, emailVerified: true, name: 'Ada', image: null },
  tokens: { accessToken: 'a token of the provider' },
})
const CONTEXT: SignInContext = {
  ...{
    ipAddress: '127.0.0.1',
    userAgent: 'test',
    remember: true,
    isCrossSite: false,
    callbackURL: undefined,
  },
  ...{ trustedDevice: undefined, knownDevice: undefined, markBrowser: () => {} },
}

export const VERBS = {
  'sign-in by email': {
    action: ({ email }) => post('/sign-in/email', { email, password: PASSWORD }),
    refused: signsIn,
    leaves: signedIn,
  },
  'sign-in by username': {
    action: ({ username }) => post('/sign-in/username', { username, password: PASSWORD }),
    refused: (now, me, before) => {
      const [status, code] = signsIn(now, me, before) ?? []
      return status && code ? [status, code.replace('EMAIL', 'USERNAME')] : undefined
    },
    leaves: signedIn,
  },
  'renew password hash': {
    start: { password: 'old form' },
    action: ({ id, stored }) => ({
      call: ({ service }) =>
        rehashPassword(service.kernel, { userId: id, stored: stored ?? '', password: PASSWORD }),
    }),
    // It reports no error if there is nothing to renew.
    refused: () => undefined,
    leaves: (state) =>
      state.password === 'old form' && !state.mustChange ? { ...state, password: 'first' } : state,
    revokesAs: 'change-password',
  },
  'verify-email with session': {
    start: { tickets: ['verify-email'] },
    action: ({ tickets }, me) => get(`/verify-email?token=${tickets['verify-email']}`, me),
    refused: open('verify-email', BAD_LINK),
    // If the session has ended in the meantime, only the link counts.
    leaves: (state, me) => (alive(state, me) === undefined ? provenByOwner(state, me) : provenByLink(state)),
    revokesAs: 'verify-email without session, signing in',
  },
  'verify-email without session, signing in': {
    start: { tickets: ['verify-email'] },
    action: ({ tickets }) => get(`/verify-email?token=${tickets['verify-email']}`),
    refused: open('verify-email', BAD_LINK),
    leaves: (state) => signedInAtFirstProof(state, provenByLink(state)),
    column: 'O',
  },
  'verify-email with password': {
    start: { tickets: ['verify-email'] },
    action: ({ tickets }) => post('/verify-email', { token: tickets['verify-email'], password: PASSWORD }),
    refused: openWithPassword('verify-email', BAD_LINK),
    leaves: (state) => signedInAtFirstProof(state, provenByOwner(state)),
    revokesAs: 'verify-email without session, signing in',
  },
  'verify-email with a new password': {
    start: { tickets: ['verify-email'] },
    action: ({ tickets }) =>
      post('/verify-email', { token: tickets['verify-email'], newPassword: PASSWORDS.chosen }),
    // Only for the first proof: it must not become another way to reset a password.
    refused: (now) => open('verify-email', BAD_LINK)(now) ?? (now.verified ? BAD_LINK : undefined),
    leaves: (state) => ({
      ...withoutUnprovenAccess(state),
      ...{ password: 'chosen', mustChange: false, sessions: ['new'] },
    }),
    revokesAs: 'verify-email without session, signing in',
  },
  'verify-email by form, with session': {
    start: { tickets: ['verify-email'] },
    action: ({ tickets }, me) => post('/confirm/verify-email', { token: tickets['verify-email'] }, me),
    refused: (now, me) =>
      open('verify-email', BAD_LINK)(now) ??
      (alive(now, me) === undefined ? undefined : [400, 'PASSWORD_REQUIRED']),
    leaves: (state, me) => provenByOwner(state, me),
    revokesAs: 'verify-email without session, signing in',
  },
  'verify-email by code': {
    start: { tickets: ['verify-email'] },
    action: ({ email }) => post('/email-otp/verify-email', { email, otp: MAILED_CODE }),
    refused: open('verify-email', BAD_CODE),
    leaves: (state) => signedInAtFirstProof(state, provenByLink(state)),
    revokesAs: 'verify-email without session, signing in',
  },
  'verify-email by code, with session': {
    start: { tickets: ['verify-email'] },
    action: ({ email }, me) => post('/email-otp/verify-email', { email, otp: MAILED_CODE }, me),
    refused: open('verify-email', BAD_CODE),
    leaves: (state, me) => (alive(state, me) === undefined ? provenByOwner(state, me) : provenByLink(state)),
    revokesAs: 'verify-email without session, signing in',
  },
  'sign-in by a mailed link': {
    start: { verified: true, tickets: ['sign-in'] },
    action: ({ tickets }) => get(`/magic-link/verify?token=${tickets['sign-in']}`),
    refused: open('sign-in', BAD_LINK),
    leaves: enteredByMail,
  },
  'sign-in by a mailed code': {
    start: { verified: true, tickets: ['sign-in'] },
    action: ({ email }) => post('/sign-in/email-otp', { email, otp: MAILED_CODE }),
    refused: open('sign-in', BAD_CODE),
    leaves: enteredByMail,
  },
  'send verification mail': {
    action: ({ email }) => ({ call: ({ service }) => mailVerification(service.kernel, { email }) }),
    refused: () => undefined,
    leaves: (state) =>
      state.user === 'there' && !state.verified && state.address === 'own'
        ? { ...state, tickets: adding(state.tickets, 'verify-email') }
        : state,
  },
  'send reset mail': {
    action: ({ email }) => ({ call: ({ service }) => mailReset(service.kernel, { email, source: {} }) }),
    refused: () => undefined,
    leaves: (state) =>
      state.user === 'there' && state.address === 'own'
        ? { ...state, tickets: adding(state.tickets, 'reset-password') }
        : state,
  },
  'reset-password': {
    start: { tickets: ['reset-password'] },
    action: ({ tickets }) =>
      post('/reset-password', { newPassword: PASSWORDS.reset, token: tickets['reset-password'] }),
    refused: open('reset-password', BAD_RESET),
    leaves: passwordReset,
    column: 'O',
  },
  'reset-password by form': {
    start: { tickets: ['reset-password'] },
    action: ({ tickets }) =>
      post('/confirm/reset-password', { newPassword: PASSWORDS.reset, token: tickets['reset-password'] }),
    // Either the form's first check fails, or the action itself.
    refused: (now, _me, before) =>
      open('reset-password', BAD_LINK)(before) ?? open('reset-password', BAD_RESET)(now),
    leaves: passwordReset,
    revokesAs: 'reset-password',
  },
  'change-password': {
    action: (_person, me) =>
      post('/change-password', { currentPassword: PASSWORD, newPassword: PASSWORDS[`changed by ${me}`] }, me),
    refused: aliveWithPassword,
    leaves: (state, me) =>
      noTickets({
        ...state,
        password: `changed by ${me}`,
        mustChange: false,
        trusted: false,
        factorBegun: false,
      }),
    column: 'O',
  },
  'change-password with revokeOtherSessions': {
    action: (_person, me) => {
      const newPassword = PASSWORDS[`changed by ${me}`]
      const body = { currentPassword: PASSWORD, newPassword, revokeOtherSessions: true }
      return post('/change-password', body, me)
    },
    refused: aliveWithPassword,
    leaves: (state, me) =>
      noTickets({
        ...state,
        password: `changed by ${me}`,
        trusted: false,
        factorBegun: false,
        sessions: [`${me} renewed`],
      }),
    column: 'O',
  },
  'set-password': {
    start: { password: null },
    action: (_person, me) => post('/set-password', { newPassword: PASSWORDS.set }, me),
    refused: (now, me) =>
      alive(now, me) ?? (now.password === null ? undefined : [400, 'PASSWORD_ALREADY_SET']),
    leaves: (state) => noTickets({ ...state, password: 'set', trusted: false, factorBegun: false }),
    revokesAs: 'change-password',
  },
  'change-email, requested': {
    action: ({ email }, me) => post('/change-email', { newEmail: newAddress(email, me) }, me),
    refused: alive,
    // A new request replaces the older one. A verified old address must confirm first.
    leaves: (state, me) => {
      const ticket = state.verified ? `confirm-change-email of ${me}` : `change-email of ${me}`
      return { ...state, tickets: adding(without(state.tickets, ...CHANGES), ticket) }
    },
  },
  'change-email, requested with password': {
    start: { verified: true },
    action: ({ email }, me) =>
      post('/change-email', { newEmail: newAddress(email, me), password: PASSWORD }, me),
    refused: aliveWithPassword,
    // Beside a second factor, also one of then, the password alone does not stand for the old address.
    leaves: (state, me, begun) => {
      const isAsked = state.factor !== 'none' || begun.factor !== 'none'
      const ticket = state.verified && isAsked ? `confirm-change-email of ${me}` : `change-email of ${me}`
      return { ...state, tickets: adding(without(state.tickets, ...CHANGES), ticket) }
    },
  },
  'change-email, requested with a code of the old address': {
    start: { verified: true, tickets: ['confirm-change-email of S'] },
    action: ({ email }, me) =>
      post('/email-otp/request-email-change', { newEmail: newAddress(email, me), otp: MAILED_CODE }, me),
    refused: (now, me) => alive(now, me) ?? open('confirm-change-email of S', BAD_CODE)(now),
    leaves: (state, me) => ({
      ...state,
      tickets: adding(without(state.tickets, ...CHANGES), `change-email of ${me}`),
    }),
  },
  'change-email, confirmed by the old address': {
    start: { tickets: ['confirm-change-email of S'] },
    action: ({ tickets }) => get(`/verify-email?token=${tickets['confirm-change-email of S']}`),
    refused: open('confirm-change-email of S', BAD_LINK),
    leaves: (state) => ({
      ...state,
      tickets: adding(without(state.tickets, 'confirm-change-email of S'), 'change-email of S'),
    }),
  },
  'change-email, confirmed by form': {
    start: { tickets: ['confirm-change-email of S'] },
    action: ({ tickets }) => post('/confirm/change-email', { token: tickets['confirm-change-email of S'] }),
    refused: open('confirm-change-email of S', BAD_LINK),
    leaves: (state) => ({
      ...state,
      tickets: adding(without(state.tickets, 'confirm-change-email of S'), 'change-email of S'),
    }),
  },
  'change-email, completed by form, with session': {
    start: { tickets: ['change-email of S', 'change-email of O'] },
    action: ({ tickets }, me) =>
      post('/confirm/change-email', { token: tickets[`change-email of ${me}`] }, me),
    refused: (now, me) => open(`change-email of ${me}`, BAD_LINK)(now),
    leaves: (state, me) => noTickets({ ...state, address: `new of ${me}`, verified: true }),
    revokesAs: 'change-email, completed with session',
  },
  'change-email, completed with password': {
    start: { tickets: ['change-email of S', 'change-email of O'] },
    action: ({ tickets }, me) =>
      post('/verify-email', { token: tickets[`change-email of ${me}`], password: PASSWORD }),
    refused: (now, me, before) => openWithPassword(`change-email of ${me}`, BAD_LINK)(now, me, before),
    leaves: (state, me) => noTickets({ ...state, address: `new of ${me}`, verified: true }),
    revokesAs: 'change-email, completed with session',
  },
  'change-email, completed with a new password': {
    start: { tickets: ['change-email of S', 'change-email of O'] },
    action: ({ tickets }, me) =>
      post('/verify-email', { token: tickets[`change-email of ${me}`], newPassword: PASSWORDS.chosen }),
    refused: (now, me) => open(`change-email of ${me}`, BAD_LINK)(now),
    leaves: (state, me) => ({ ...takenOver(state, me), password: 'chosen', mustChange: false }),
    revokesAs: 'verify-email without session, signing in',
  },
  'change-email, completed with session': {
    start: { tickets: ['change-email of S', 'change-email of O'] },
    action: ({ tickets }, me) => get(`/verify-email?token=${tickets[`change-email of ${me}`]}`, me),
    refused: (now, me) => open(`change-email of ${me}`, BAD_LINK)(now),
    leaves: (state, me) => noTickets({ ...state, address: `new of ${me}`, verified: true }),
    column: 'O',
  },
  'change-email, completed by code': {
    start: { tickets: ['change-email of S', 'change-email of O'] },
    action: ({ email }, me) =>
      post('/email-otp/change-email', { newEmail: newAddress(email, me), otp: MAILED_CODE }, me),
    refused: (now, me) => alive(now, me) ?? open(`change-email of ${me}`, BAD_CODE)(now),
    leaves: (state, me) => noTickets({ ...state, address: `new of ${me}`, verified: true }),
    revokesAs: 'change-email, completed with session',
  },
  'change-email, completed without session': {
    start: { tickets: ['change-email of S', 'change-email of O'] },
    action: ({ tickets }, me) => get(`/verify-email?token=${tickets[`change-email of ${me}`]}`),
    refused: (now, me) => open(`change-email of ${me}`, BAD_LINK)(now),
    leaves: (state, me) => ({ ...takenOver(state, me), mustChange: state.password !== null }),
    revokesAs: 'verify-email without session, signing in',
  },
  'update-user': {
    action: (_person, me) => post('/update-user', { name: `Ada of ${me}` }, me),
    refused: alive,
    leaves: (state, me) => ({ ...state, name: `Ada of ${me}` }),
  },
  'unlink-account': {
    action: (_person, me) => post('/unlink-account', { providerId: 'github' }, me),
    refused: (now, me) =>
      alive(now, me) ??
      (now.linked ? undefined : [404, 'ACCOUNT_NOT_FOUND']) ??
      (now.password === null && now.passkeys.length === 0 ? LAST_WAY_IN : undefined),
    leaves: (state) => ({ ...redeemed(state, 'second-factor'), linked: false }),
    column: 'O',
    needsFresh: true,
    refusedLate: true,
  },
  'social, sign-in': {
    action: ({ id, email }) => ({
      call: ({ service: { kernel } }) =>
        enter(kernel, { provider: 'github', identity: identityOf(id, email), requestSignUp: false }, CONTEXT),
    }),
    refused: (now) => {
      if (now.user === 'gone' || !now.linked) return [403, 'ACCOUNT_NOT_LINKED']
      return now.user === 'banned' ? [403, 'BANNED_USER'] : undefined
    },
    leaves: admitted,
  },
  'social, linking begun': {
    action: (_person, me) => post('/link-social', { provider: 'acme' }, me),
    refused: alive,
    leaves: (state, me) => ({ ...state, tickets: adding(state.tickets, `social-link of ${me}`) }),
  },
  'social, linked at the callback': {
    start: { linked: false },
    action: ({ id: userId, email, sessions }, me) => ({
      call: ({ service: { kernel } }) =>
        linkIdentity(kernel, {
          proof: { userId, session: sessions[me] },
          refuse: () => fail('STATE_MISMATCH'),
          provider: 'github',
          identity: identityOf(userId, email),
        }),
    }),
    refused: (now, me) => {
      if (alive(now, me) !== undefined) return [400, 'STATE_MISMATCH']
      return now.address === 'own' ? undefined : [400, 'UNABLE_TO_LINK_ACCOUNT']
    },
    leaves: (state) => ({ ...state, linked: true }),
  },
  'passkey, options for a new one': {
    action: (_person, me) => get('/passkey/generate-register-options', me),
    refused: alive,
    // A new request replaces the older one.
    leaves: (state, me) => ({
      ...state,
      tickets: adding(without(state.tickets, ...REGISTRATIONS), `passkey-registration of ${me}`),
    }),
  },
  'passkey, added': {
    start: { tickets: REGISTRATIONS },
    action: ({ passkey }, me) => post('/passkey/verify-registration', passkey.registration(me), me),
    refused: (now, me) => alive(now, me) ?? open(`passkey-registration of ${me}`, NO_CHALLENGE)(now),
    leaves: passkeyAdded,
  },
  'passkey, added with revokeOtherSessions': {
    start: { tickets: REGISTRATIONS },
    action: ({ passkey }, me) => {
      const body = { ...passkey.registration(me), revokeOtherSessions: true }
      return post('/passkey/verify-registration', body, me)
    },
    refused: (now, me) => alive(now, me) ?? open(`passkey-registration of ${me}`, NO_CHALLENGE)(now),
    leaves: (state, me) => ended(passkeyAdded(state, me), other(me), `${other(me)} renewed`, 'new'),
    revokesAs: 'revoke-other-sessions',
  },
  'passkey, sign-in': {
    start: { passkeys: ['first'] },
    action: ({ passkey }) => post('/passkey/verify-authentication', passkey.signIn),
    refused: (now) => {
      if (now.user === 'gone' || !hasFirstPasskey(now)) return [401, 'AUTHENTICATION_FAILED']
      return now.user === 'banned' ? [403, 'BANNED_USER'] : undefined
    },
    leaves: withNewSession,
  },
  'passkey, renamed': {
    start: { passkeys: ['first'] },
    action: ({ passkey: { id } }, me) => post('/passkey/update-passkey', { id, name: `of ${me}` }, me),
    refused: (now, me) => alive(now, me) ?? (hasFirstPasskey(now) ? undefined : [404, 'PASSKEY_NOT_FOUND']),
    leaves: (state, me) => ({ ...state, passkeys: adding(addedPasskeys(state), `of ${me}`) }),
  },
  'passkey, removed': {
    start: { passkeys: ['first'] },
    action: ({ passkey: { id } }, me) => post('/passkey/delete-passkey', { id }, me),
    refused: (now, me) =>
      alive(now, me) ??
      (hasFirstPasskey(now) ? undefined : [404, 'PASSKEY_NOT_FOUND']) ??
      (now.password === null && !now.linked && now.passkeys.length === 1 ? LAST_WAY_IN : undefined),
    leaves: (state) => ({
      ...withoutApprovals(redeemed(state, 'second-factor')),
      passkeys: addedPasskeys(state),
      trusted: false,
    }),
    column: 'O',
    needsFresh: true,
  },
  'reauthenticate by password': {
    action: (_person, me) => post('/reauthenticate', { password: PASSWORD }, me),
    refused: aliveWithPassword,
    leaves: reauthenticated,
  },
  'reauthenticate by code': {
    start: WITH_FACTOR,
    action: (_person, me) => post('/reauthenticate', { code: BACKUP_CODE }, me),
    refused: (now, me) =>
      alive(now, me) ?? (now.factor === 'none' ? [400, 'TWO_FACTOR_NOT_ENABLED'] : withoutBackupCode(now)),
    leaves: (state, me) => ({ ...reauthenticated(state, me), backupCodes: 0 }),
  },
  'reauthenticate by passkey': {
    start: { passkeys: ['first'] },
    action: ({ passkey }, me) => post('/reauthenticate', passkey.signIn, me),
    refused: (now, me, before) =>
      alive(now, me) ??
      (hasFirstPasskey(before) ? undefined : [401, 'PASSKEY_NOT_FOUND']) ??
      (hasFirstPasskey(now) ? undefined : [401, 'UNAUTHORIZED']),
    leaves: reauthenticated,
  },
  'reauthenticate, provider begun': {
    action: (_person, me) => post('/reauthenticate', { provider: 'github' }, me),
    refused: linkedAlive,
    leaves: (state, me) => ({ ...state, tickets: adding(state.tickets, `social-reauthentication of ${me}`) }),
  },
  'reauthenticate, provider at the callback': {
    action: ({ id: userId, sessions }, me) => ({
      call: ({ service: { kernel } }) =>
        reauthenticateByProvider(kernel, {
          ...{ userId, session: sessions[me] },
          account: { providerId: 'github', accountId: userId },
        }),
    }),
    refused: (now, me) =>
      alive(now, me) === undefined && now.linked ? undefined : [403, 'ACCOUNT_NOT_LINKED'],
    leaves: reauthenticated,
  },
  'refresh-token': {
    action: (_person, me) => post('/refresh-token', { providerId: 'github' }, me),
    refused: linkedAlive,
    leaves: (state) => ({ ...state, linked: 'refreshed' }),
  },
  'get-access-token': {
    action: (_person, me) => post('/get-access-token', { providerId: 'github' }, me),
    refused: linkedAlive,
    leaves: (state) => ({ ...state, linked: 'refreshed' }),
  },
  'two-factor, begun': {
    action: (_person, me) => post('/two-factor/enable', { password: PASSWORD }, me),
    refused: aliveAsOwner,
    leaves: (state, me) => ({ ...state, factorBegun: me }),
  },
  'two-factor, put in force': {
    start: { factorBegun: 'S' },
    action: (_person, me) => post('/two-factor/verify-totp', { code: codeNow('second') }, me),
    refused: (now, me) => alive(now, me) ?? (now.factorBegun === me ? undefined : withoutBegunFactor(now)),
    leaves(state, me) {
      // A first factor ends the other sessions.
      const left = state.factor === 'none' ? ended(state, other(me), `${other(me)} renewed`, 'new') : state
      return {
        ...factorChanged(left),
        ...{ factor: 'second', factorBegun: false, backupCodes: 1 },
        sessions: left.sessions.map((name) => (name === me ? `${me} renewed` : name)).toSorted(),
      }
    },
    revokesAs: 'revoke-other-sessions',
  },
  'two-factor, disabled': {
    start: { ...WITH_FACTOR, tickets: ['second-factor'] },
    action: (_person, me) => post('/two-factor/disable', { password: PASSWORD }, me),
    refused: (now, me, before) =>
      aliveAsOwner(now, me, before) ??
      (now.factor === 'none' && !now.factorBegun ? [400, 'TWO_FACTOR_NOT_ENABLED'] : undefined),
    leaves: (state) =>
      state.factor === 'none'
        ? { ...state, factorBegun: false }
        : { ...withoutApprovals(factorChanged(state)), ...NO_FACTOR },
    column: 'O',
    needsFresh: true,
  },
  'two-factor, new backup codes': {
    start: { ...WITH_FACTOR, tickets: ['second-factor'] },
    action: (_person, me) => post('/two-factor/generate-backup-codes', { password: PASSWORD }, me),
    refused: (now, me, before) =>
      aliveAsOwner(now, me, before) ?? (now.factor === 'none' ? [400, 'TWO_FACTOR_NOT_ENABLED'] : undefined),
    leaves: (state) => ({ ...factorChanged(state), backupCodes: 'replaced' }),
  },
  'two-factor, code of a pending sign-in': {
    start: { ...WITH_FACTOR, tickets: ['second-factor'] },
    action: ({ tickets }) =>
      post('/two-factor/verify-totp', { token: `2fa_${tickets['second-factor']}`, code: codeNow('first') }),
    refused: open('second-factor', NOT_PENDING),
    leaves: (state) => withNewSession(redeemed(state, 'second-factor')),
  },
  'two-factor, backup code of a pending sign-in': {
    start: { ...WITH_FACTOR, tickets: ['second-factor'] },
    action: ({ tickets }) =>
      post('/two-factor/verify-backup-code', { token: `2fa_${tickets['second-factor']}`, code: BACKUP_CODE }),
    refused: open('second-factor', NOT_PENDING),
    leaves: (state) => ({ ...withNewSession(redeemed(state, 'second-factor')), backupCodes: 0 }),
  },
  'two-factor, mailed code of a pending sign-in': {
    start: { ...WITH_FACTOR, tickets: ['second-factor'] },
    action: ({ tickets }) => post('/two-factor/send-otp', { token: `2fa_${tickets['second-factor']}` }),
    refused: open('second-factor', NOT_PENDING),
    leaves: (state) => ({ ...state, tickets: adding(state.tickets, 'second-factor-code') }),
  },
  'device, approved': {
    action: ({ userCode }, me) => post('/device/approve', { userCode }, me),
    refused: alive,
    leaves: (state, me) => ({ ...state, tickets: adding(state.tickets, `device-session of ${me}`) }),
  },
  'device, refused': {
    action: ({ userCode }, me) => post('/device/deny', { userCode }, me),
    refused: alive,
    leaves: (state) => state,
  },
  'device, fetched': {
    start: { tickets: ['device-session of S'] },
    action: ({ tickets }) => post('/device/token', deviceToken(tickets['device-session of S'])),
    refused: open('device-session of S', [400, 'INVALID_DEVICE_CODE']),
    leaves: (state) => withNewSession(redeemed(state, 'device-session of S')),
  },
  'delete-user in a fresh session': {
    action: (_person, me) => post('/delete-user', {}, me),
    refused: alive,
    leaves: deleted,
    revokesAs: 'delete-user by password',
  },
  'delete-user by password': {
    action: (_person, me) => post('/delete-user', { password: PASSWORD }, me),
    refused: aliveWithPassword,
    leaves: deleted,
    column: 'O',
  },
  'delete-user by mail, requested': {
    stale: true,
    action: (_person, me) => post('/delete-user', {}, me),
    refused: alive,
    leaves: (state, me) => ({ ...state, tickets: adding(state.tickets, `delete-user of ${me}`) }),
  },
  'delete-user by token': {
    action: ({ tickets }, me) => post('/delete-user', { token: tickets[`delete-user of ${me}`] }, me),
    refused: (now, me) => alive(now, me) ?? open(`delete-user of ${me}`, BAD_RESET)(now),
    leaves: deleted,
    revokesAs: 'delete-user by password',
  },
  'delete-user by link': {
    action: ({ tickets }, me) => get(`/delete-user/callback?token=${tickets[`delete-user of ${me}`]}`, me),
    refused: (now, me) => alive(now, me) ?? open(`delete-user of ${me}`, BAD_RESET)(now),
    leaves: deleted,
    revokesAs: 'delete-user by password',
  },
  'delete-user by form': {
    action: ({ tickets }, me) => post('/confirm/delete-user', { token: tickets[`delete-user of ${me}`] }, me),
    refused: (now, me, before) =>
      open(`delete-user of ${me}`, BAD_LINK)(before) ??
      alive(now, me) ??
      open(`delete-user of ${me}`, BAD_RESET)(now),
    leaves: deleted,
    revokesAs: 'delete-user by password',
  },
  'delete-user by form, with password': {
    action: ({ tickets }, me) =>
      post('/confirm/delete-user', { token: tickets[`delete-user of ${me}`], password: PASSWORD }),
    refused: (now, me, before) => openWithPassword(`delete-user of ${me}`, BAD_RESET)(now, me, before),
    leaves: deleted,
    revokesAs: 'delete-user by password',
  },
  'revoke-session': {
    action: ({ sessions }, me) => post('/revoke-session', { token: `sh_${sessions[other(me)].id}` }, me),
    refused: alive,
    leaves: (state, me) => ended(state, other(me), `${other(me)} renewed`),
    column: 'O',
  },
  'revoke-sessions': {
    action: (_person, me) => post('/revoke-sessions', {}, me),
    refused: alive,
    leaves: (state) => noTickets({ ...state, trusted: false, factorBegun: false, sessions: [] }),
    column: 'O',
  },
  'revoke-other-sessions': {
    action: (_person, me) => post('/revoke-other-sessions', {}, me),
    refused: alive,
    leaves: (state, me) => ended(state, other(me), `${other(me)} renewed`, 'new'),
    column: 'O',
  },
  'one-time token, generated': {
    action: (_person, me) => get('/one-time-token/generate', me),
    refused: alive,
    leaves: (state, me) => ({ ...state, tickets: adding(state.tickets, `one-time-token of ${me}`) }),
  },
  'one-time token, redeemed': {
    start: { tickets: ['one-time-token of O', 'one-time-token of S'] },
    action: ({ tickets }, me) =>
      post('/one-time-token/verify', { token: tickets[`one-time-token of ${me}`] ?? 'none' }),
    // A new token of the session that asked for it makes it void.
    refused: (now, me) =>
      open(`one-time-token of ${me}`, BAD_RESET)(now) ??
      (alive(now, me) === undefined ? undefined : BAD_RESET),
    leaves: (state, me) => ({
      ...redeemed(state, `one-time-token of ${me}`),
      sessions: adding(state.sessions, `new from ${me}`),
    }),
  },
  'sign-out': {
    action: (_person, me) => post('/sign-out', {}, me),
    refused: alive,
    leaves: (state, me) => ended(state, me),
    // Sent by the same session that acts.
    column: 'S',
  },
  ban: {
    action: ({ id }) => ({
      call: ({ service }) => banByOperator(service.kernel, id, { reason: null, expires: null }),
    }),
    refused: exists,
    leaves: (state) => noTickets({ ...state, user: 'banned', sessions: [] }),
    column: 'O',
  },
  'set password as operator': {
    action: ({ id }) => ({ call: ({ service }) => setPasswordByOperator(service.kernel, id, PASSWORDS.set) }),
    refused: exists,
    leaves: withAssignedPassword,
    revokesAs: 'reset-password',
  },
  'delete user as operator': {
    action: ({ id }) => ({ call: ({ service }) => deleteByOperator(service.kernel, id) }),
    refused: exists,
    leaves: deleted,
    revokesAs: 'delete-user by password',
  },
  unban: {
    action: ({ id }) => ({ call: ({ service }) => unbanByOperator(service.kernel, id) }),
    refused: exists,
    leaves: (state) => ({ ...state, user: 'there' }),
  },
  'set-role': {
    start: { role: 'admin' },
    action: ({ id }) => ({ call: ({ service }) => setRoleByOperator(service.kernel, id, 'user') }),
    refused: exists,
    leaves: (state) => ({ ...state, role: 'user' }),
    column: 'O',
  },
  'admin/set-role': {
    start: { role: 'admin' },
    action: ({ id: userId }) => post('/admin/set-role', { userId, role: 'user' }, 'admin'),
    refused: isThere,
    leaves: (state) => ({ ...state, role: 'user' }),
    revokesAs: 'set-role',
  },
  'admin/ban-user': {
    action: ({ id: userId }) => post('/admin/ban-user', { userId }, 'admin'),
    refused: isThere,
    leaves: (state) => noTickets({ ...state, user: 'banned', sessions: [] }),
    revokesAs: 'ban',
  },
  'admin/unban-user': {
    action: ({ id: userId }) => post('/admin/unban-user', { userId }, 'admin'),
    refused: isThere,
    leaves: (state) => ({ ...state, user: 'there' }),
  },
  'admin/remove-user': {
    action: ({ id: userId }) => post('/admin/remove-user', { userId }, 'admin'),
    refused: isThere,
    leaves: deleted,
    revokesAs: 'delete-user by password',
  },
  'admin/update-user': {
    action: ({ id: userId }) => post('/admin/update-user', { userId, data: { name: 'Given' } }, 'admin'),
    refused: isThere,
    leaves: (state) => ({ ...state, name: 'Given' }),
  },
  'admin/set-user-password': {
    action: ({ id: userId }) =>
      post('/admin/set-user-password', { userId, newPassword: PASSWORDS.set }, 'admin'),
    refused: isThere,
    leaves: withAssignedPassword,
    revokesAs: 'reset-password',
  },
  'admin/revoke-user-session': {
    action: ({ sessions }, me) =>
      post('/admin/revoke-user-session', { sessionToken: `sh_${sessions[other(me)].id}` }, 'admin'),
    // The session names the user, so nothing is left to find when it has ended. It may end later than it was found.
    refused: (now, me, before) =>
      before.user !== 'gone' && before.sessions.includes(other(me)) ? isThere(now) : undefined,
    leaves: (state, me) => ended(state, other(me), `${other(me)} renewed`),
    revokesAs: 'revoke-session',
  },
  'admin/revoke-user-sessions': {
    action: ({ id: userId }) => post('/admin/revoke-user-sessions', { userId }, 'admin'),
    refused: isThere,
    leaves: (state) => noTickets({ ...state, trusted: false, factorBegun: false, sessions: [] }),
    revokesAs: 'revoke-sessions',
  },
  'admin/impersonate-user': {
    action: ({ id: userId }) => post('/admin/impersonate-user', { userId }, 'admin'),
    refused: (now) => isThere(now) ?? (now.user === 'banned' ? [403, 'BANNED_USER'] : undefined),
    leaves: withNewSession,
  },
  // The user of the table is the admin here, and acts on another one.
  'admin/unban-user by this user': {
    start: { role: 'admin' },
    action: ({ admin }, me) => post('/admin/unban-user', { userId: admin.id }, me),
    refused: (now, me) => alive(now, me) ?? isStillAdmin('YOU_ARE_NOT_ALLOWED_TO_BAN_USERS')(now),
    leaves: (state) => state,
  },
  'admin/impersonate-user, handed off': {
    start: { role: 'admin' },
    action: ({ admin }, me) => post('/admin/impersonate-user', { userId: admin.id, handoff: true }, me),
    refused: (now, me) => alive(now, me) ?? isStillAdmin('YOU_ARE_NOT_ALLOWED_TO_IMPERSONATE_USERS')(now),
    leaves: (state, me) => ({ ...state, tickets: adding(state.tickets, `impersonation-handoff of ${me}`) }),
  },
  'admin/exchange-handoff': {
    start: { role: 'admin', tickets: ['impersonation-handoff of O', 'impersonation-handoff of S'] },
    action: ({ tickets }, me) =>
      post('/admin/exchange-handoff', { code: tickets[`impersonation-handoff of ${me}`] ?? 'none' }),
    // A new token of the session that asked for it makes it void.
    refused: (now, me) =>
      open(`impersonation-handoff of ${me}`, BAD_HANDOFF)(now) ??
      (alive(now, me) === undefined && now.role === 'admin' ? undefined : BAD_HANDOFF),
    leaves: (state, me) => redeemed(state, `impersonation-handoff of ${me}`),
  },
  'admin/create-user': {
    start: { role: 'admin' },
    action: ({ email }, me) => {
      const fresh = { email: newAddress(email, me).replace('@', '@new.'), name: 'New', password: PASSWORD }
      return post('/admin/create-user', fresh, me)
    },
    refused: (now, me) => alive(now, me) ?? isStillAdmin('YOU_ARE_NOT_ALLOWED_TO_CREATE_USERS')(now),
    leaves: (state) => state,
  },
} as const satisfies Record<string, Verb>

export type VerbName = keyof typeof VERBS

/** No row of the table, since it waits for the user's row twice, with a hash in between: mail-code-races.test.ts. */
export const RESET_BY_CODE: Verb = {
  start: { tickets: ['reset-password'] },
  action: ({ email }) =>
    post('/email-otp/reset-password', { email, otp: MAILED_CODE, password: PASSWORDS.reset }),
  refused: open('reset-password', BAD_CODE),
  leaves: passwordReset,
}

const ORGANIZATION = 'changes memberships: organization-races.test.ts'

/** Routes of the surface that change no existing user, and why. */
export const EXEMPT: Readonly<Record<string, string>> = {
  'GET /api/auth/ok': 'reads',
  'GET /api/auth/error': 'reads',
  'GET /api/auth/get-session': 'reads',
  'POST /api/auth/get-session': 'reads',
  'GET /api/auth/token': 'reads: it signs what the session is',
  'GET /api/auth/jwks': 'reads',
  'GET /api/auth/.well-known/jwks.json': 'reads',
  'GET /api/auth/list-sessions': 'reads',
  'GET /api/auth/list-accounts': 'reads',
  'GET /api/auth/account-info': 'reads; refreshes tokens as row "get-access-token" does',
  'POST /api/auth/account-info': 'reads; refreshes tokens as row "get-access-token" does',
  'GET /api/auth/reset-password/{token}': 'reads: the POST consumes the token',
  'GET /api/auth/confirm/verify-email': 'reads: the form acts',
  'GET /api/auth/confirm/magic-link': 'reads: the form acts',
  'POST /api/auth/confirm/magic-link': 'acts like row "sign-in by a mailed link"',
  'POST /api/auth/sign-in/magic-link': 'enqueues a job, which creates a ticket of an address',
  'POST /api/auth/email-otp/send-verification-otp': 'enqueues a job, as its links do',
  'POST /api/auth/email-otp/check-verification-otp': 'gives the try at a right code back',
  'POST /api/auth/email-otp/request-password-reset': 'enqueues a job, row "send reset mail"',
  'POST /api/auth/forget-password/email-otp': 'enqueues a job, row "send reset mail"',
  'POST /api/auth/email-otp/reset-password': 'RESET_BY_CODE',
  'GET /api/auth/confirm/change-email': 'reads: the form acts',
  'GET /api/auth/confirm/delete-user': 'reads: the form acts',
  'GET /api/auth/confirm/reset-password': 'reads: the form acts',
  'POST /api/auth/is-username-available': 'reads',
  'GET /api/auth/multi-session/list-device-sessions': 'reads',
  'POST /api/auth/multi-session/set-active': 'sets a cookie: the token in it is checked where it is used',
  'POST /api/auth/multi-session/revoke': 'ends the session of each token as row "sign-out" does',
  'GET /api/auth/admin/list-users': 'reads',
  'GET /api/auth/admin/get-user': 'reads',
  'POST /api/auth/admin/list-user-sessions': 'reads',
  'GET /api/auth/admin/list-user-accounts': 'reads',
  'GET /api/auth/admin/list-user-factors': 'reads',
  'GET /api/auth/admin/list-organizations': 'reads',
  'GET /api/auth/admin/list-user-organizations': 'reads',
  'GET /api/auth/admin/get-organization': 'reads',
  'GET /api/auth/admin/list-organization-members': 'reads',
  'GET /api/auth/admin/list-organization-invitations': 'reads',
  'POST /api/auth/admin/update-organization': ORGANIZATION,
  'POST /api/auth/admin/delete-organization': ORGANIZATION,
  'POST /api/auth/admin/update-member-role': ORGANIZATION,
  'POST /api/auth/admin/remove-member': ORGANIZATION,
  'POST /api/auth/admin/invite-member': ORGANIZATION,
  'POST /api/auth/admin/cancel-invitation': ORGANIZATION,
  'GET /api/auth/admin/list-audit-events': 'reads',
  'GET /api/auth/admin/list-permissions': 'reads',
  'POST /api/auth/admin/has-permission': 'reads',
  'POST /api/auth/admin/stop-impersonating': 'ends its own session, row "sign-out"',
  'POST /api/auth/sign-in/social': 'creates a ticket of nobody, or acts like row "social, sign-in"',
  'GET /api/auth/callback/{provider}': 'rows "social, sign-in" and "social, linked at the callback"',
  'POST /api/auth/callback/{provider}': 'redirects to the GET',
  'POST /api/auth/two-factor/get-totp-uri': 'reads',
  'POST /api/auth/two-factor/verify-otp': 'acts like verify-totp, with another check of the code',
  'GET /api/auth/passkey/list-user-passkeys': 'reads',
  'GET /api/auth/passkey/generate-authenticate-options': 'creates a ticket of nobody',
  'POST /api/auth/passkey/generate-authenticate-options': 'creates a ticket of nobody',
  'POST /api/auth/device/code': 'creates a code of nobody',
  'GET /api/auth/device': 'reads',
  'GET /api/auth/confirm/device': 'reads: the form acts',
  'POST /api/auth/confirm/device': 'acts like rows "device, approved" and "device, refused"',
  'POST /api/auth/sign-up/email': 'creates its user in the same transaction',
  'POST /api/auth/admin/create-first-admin': 'creates its user in the same transaction',
  'POST /api/auth/sign-in/anonymous': 'creates its user in the same transaction',
  'POST /api/auth/delete-anonymous-user': 'of anonymous users alone, and refused to this one',
  'POST /api/auth/send-verification-email': 'enqueues a job, row "send verification mail"',
  'POST /api/auth/forget-password': 'enqueues a job, row "send reset mail"',
  'POST /api/auth/request-password-reset': 'enqueues a job, row "send reset mail"',
  'GET /api/auth/organization/get-organization': 'reads',
  'GET /api/auth/organization/get-full-organization': 'reads',
  'GET /api/auth/organization/list': 'reads',
  'GET /api/auth/organization/get-active-member': 'reads',
  'GET /api/auth/organization/get-active-member-role': 'reads',
  'GET /api/auth/organization/list-members': 'reads',
  'GET /api/auth/organization/get-invitation': 'reads',
  'GET /api/auth/organization/list-invitations': 'reads',
  'GET /api/auth/organization/list-user-invitations': 'reads',
  'POST /api/auth/organization/check-slug': 'reads',
  'POST /api/auth/organization/has-permission': 'reads',
  'GET /api/auth/confirm/invitation': 'reads: the form acts',
  'POST /api/auth/organization/create': ORGANIZATION,
  'POST /api/auth/organization/update': ORGANIZATION,
  'POST /api/auth/organization/delete': ORGANIZATION,
  'POST /api/auth/organization/set-active': ORGANIZATION,
  'POST /api/auth/organization/invite-member': ORGANIZATION,
  'POST /api/auth/organization/cancel-invitation': ORGANIZATION,
  'POST /api/auth/organization/accept-invitation': ORGANIZATION,
  'POST /api/auth/organization/reject-invitation': ORGANIZATION,
  'POST /api/auth/organization/remove-member': ORGANIZATION,
  'POST /api/auth/organization/update-member-role': ORGANIZATION,
  'POST /api/auth/organization/leave': ORGANIZATION,
  'POST /api/auth/confirm/invitation': ORGANIZATION,
}
