import { mailVerification } from '#auth/email/email.ts'
import { mailReset, setPasswordByOperator } from '#auth/password/password.ts'
import { deleteByOperator } from '#auth/profile/profile.ts'
import { banUser, unbanUser } from '#identity/bans.ts'
import { renewPassword } from '#identity/passwords.ts'
import { setRole } from '#identity/roles.ts'
import { PASSWORD, type TestService } from '#test/harness.ts'
import { newAddress, PASSWORDS, type Person, type Who, type World } from './world.ts'

/** Status and code. */
export type Refusal = readonly [number, string]

/** A request, or a call in this process for what has no route of its own. */
export type Deed =
  | {
      readonly method: 'GET' | 'POST'
      readonly path: string
      readonly body?: object
      /** Whose session it carries. */
      readonly session?: Who
    }
  | { readonly call: (t: TestService) => Promise<unknown> }

/** One row: what acts on a user, what it relies on, and what it leaves. To add a feature, add its rows. */
export type Verb = {
  /** What is different at its start; tickets are further ones. */
  readonly start?: Partial<World>
  /** Its sessions are older than `session.fresh_age`. */
  readonly stale?: true
  readonly deed: (person: Person, me: Who) => Deed
  /** Why it does not act on such a user, given how they were when it was let in; undefined: it acts. */
  readonly refused: (now: World, me: Who, before: World) => Refusal | undefined
  /** What it leaves when it acts. */
  readonly leaves: (world: World, me: Who) => World
  /** As a column: whose session it comes from, against a row of session S. */
  readonly column?: Who
  /** Takes something away as the named column does, and is therefore not one. */
  readonly revokesAs?: string
}

const AUTH = '/api/auth'
const post = (path: string, body: object, session?: Who): Deed =>
  session === undefined
    ? { method: 'POST', path: `${AUTH}${path}`, body }
    : { method: 'POST', path: `${AUTH}${path}`, body, session }
const get = (path: string, session?: Who): Deed =>
  session === undefined
    ? { method: 'GET', path: `${AUTH}${path}` }
    : { method: 'GET', path: `${AUTH}${path}`, session }
/** Refusals, by what a verb relies on. */
const alive = ({ user, sessions }: World, me: Who): Refusal | undefined =>
  user === 'there' && sessions.includes(me) ? undefined : [401, 'UNAUTHORIZED']
const sameHash =
  (refusal: Refusal) =>
  ({ user, password }: World, before: World): Refusal | undefined =>
    user !== 'gone' && password === before.password ? undefined : refusal
const open =
  (ticket: string, refusal: Refusal) =>
  ({ user, tickets, address }: World): Refusal | undefined =>
    user === 'there' && tickets.includes(ticket) && (address === 'own' || ticket.startsWith('change-email'))
      ? undefined
      : refusal
const isThere = ({ user }: World): Refusal | undefined => (user === 'gone' ? [404, 'NOT_THERE'] : undefined)

/** Changes. */
const without = (list: readonly string[], ...names: string[]) => list.filter((name) => !names.includes(name))
const plus = (list: readonly string[], ...names: string[]) => [...list, ...names].toSorted()
const noTickets = (world: World): World => ({ ...world, tickets: [] })
const ended = (world: World, ...who: string[]): World => ({
  ...world,
  sessions: without(world.sessions, ...who),
  tickets: world.tickets.filter((name) => !who.some((one) => name.endsWith(` of ${one}`))),
})
const other = (me: Who): Who => (me === 'S' ? 'O' : 'S')
const gone = (world: World): World => ({ ...world, user: 'gone' })
/** What was added before the address was proven goes: it may be another person's. */
const firstProof = (world: World): World =>
  world.verified ? world : { ...world, verified: true, linked: false }
const withoutWhatOthersAdded = (world: World): World => noTickets({ ...firstProof(world), sessions: [] })
const redeemed = (world: World, ticket: string): World => ({
  ...world,
  tickets: without(world.tickets, ticket),
})
/** The link by itself shows nothing of who set the password. */
const provenByLink = (world: World): World =>
  world.verified
    ? redeemed(world, 'verify-email')
    : { ...withoutWhatOthersAdded(world), mustChange: world.password !== null }
/** The owner's own proof. */
const provenByOwner = (world: World): World => redeemed({ ...world, verified: true }, 'verify-email')
/** A link of an address that is proven already signs nobody in. */
const begunAtFirstProof = (before: World, after: World): World => (before.verified ? after : begun(after))
const begun = (world: World): World => ({ ...world, sessions: plus(world.sessions, 'new') })

/** The account has an address of which nothing shows that it is of the person who set the password. */
const taken = (world: World, me: Who): World =>
  noTickets({ ...world, address: `new of ${me}`, verified: true, linked: false, sessions: [] })

const wasReset = (world: World): World => ({
  ...withoutWhatOthersAdded(world),
  ...{ password: 'reset', mustChange: false },
})

const NO_PASSWORD: Refusal = [400, 'CREDENTIAL_ACCOUNT_NOT_FOUND']
const WRONG: Refusal = [400, 'INVALID_PASSWORD']
const TO_CHANGE: Refusal = [403, 'PASSWORD_CHANGE_REQUIRED']
const isFirst = ({ password }: World): boolean => password === 'first' || password === 'old form'

/** Of a caller who shows the first password as well, when it is checked against the hash of before. */
const aliveWithPassword = (now: World, me: Who, before: World): Refusal | undefined => {
  const ended = alive(now, me)
  if (ended !== undefined) return ended
  if (before.password === null) return NO_PASSWORD
  if (!isFirst(before)) return WRONG
  if (before.mustChange) return TO_CHANGE
  return now.mustChange ? [401, 'UNAUTHORIZED'] : sameHash([401, 'UNAUTHORIZED'])(now, before)
}

/** Of a link and the first password, without a session. */
const openWithPassword =
  (ticket: string, refusal: Refusal) =>
  (now: World, _me: Who, before: World): Refusal | undefined => {
    const closed = open(ticket, BAD_LINK)(before) ?? open(ticket, refusal)(now)
    if (closed !== undefined) return closed
    if (!isFirst(before)) return WRONG
    if (before.mustChange) return TO_CHANGE
    return now.mustChange ? WRONG : sameHash(WRONG)(now, before)
  }

/** Another hash of the same password stops nobody from signing in. */
const signsIn = (now: World, _me: Who, before: World): Refusal | undefined => {
  const same =
    now.password === before.password || (before.password === 'old form' && now.password === 'first')
  if (now.user === 'gone' || now.password === null || !same) return [401, 'INVALID_EMAIL_OR_PASSWORD']
  if (now.user === 'banned') return [403, 'BANNED_USER']
  return now.mustChange ? TO_CHANGE : undefined
}
const signedIn = (world: World): World => ({
  ...world,
  sessions: plus(world.sessions, 'new'),
  password: world.password === 'old form' ? 'first' : world.password,
})
const BAD_LINK: Refusal = [401, 'INVALID_TOKEN']
const BAD_RESET: Refusal = [400, 'INVALID_TOKEN']
const CHANGES = (['S', 'O'] as const).flatMap((who) => [
  `change-email of ${who}`,
  `confirm-change-email of ${who}`,
])

export const VERBS = {
  'sign-in by email': {
    deed: ({ email }) => post('/sign-in/email', { email, password: PASSWORD }),
    refused: signsIn,
    leaves: signedIn,
  },
  'sign-in by username': {
    deed: ({ username }) => post('/sign-in/username', { username, password: PASSWORD }),
    refused: (now, me, before) => {
      const [status, code] = signsIn(now, me, before) ?? []
      return status && code ? [status, code.replace('EMAIL', 'USERNAME')] : undefined
    },
    leaves: signedIn,
  },
  'a hash is renewed': {
    start: { password: 'old form' },
    deed: ({ id, stored }) => ({
      call: ({ service }) =>
        renewPassword(service.kernel, { userId: id, stored: stored ?? '', password: PASSWORD }),
    }),
    // It says nothing when there is nothing to renew.
    refused: () => undefined,
    leaves: (world) =>
      world.password === 'old form' && !world.mustChange ? { ...world, password: 'first' } : world,
    revokesAs: 'change-password',
  },
  'verify-email in the own session': {
    start: { tickets: ['verify-email'] },
    deed: ({ tickets }, me) => get(`/verify-email?token=${tickets['verify-email']}`, me),
    refused: open('verify-email', BAD_LINK),
    // A session that has ended since is none: then it is the link alone.
    leaves: (world, me) => (alive(world, me) === undefined ? provenByOwner(world) : provenByLink(world)),
  },
  'verify-email by the link alone, signing in': {
    start: { tickets: ['verify-email'] },
    deed: ({ tickets }) => get(`/verify-email?token=${tickets['verify-email']}`),
    refused: open('verify-email', BAD_LINK),
    leaves: (world) => begunAtFirstProof(world, provenByLink(world)),
    column: 'O',
  },
  'verify-email by the page, with the password': {
    start: { tickets: ['verify-email'] },
    deed: ({ tickets }) => post('/verify-email', { token: tickets['verify-email'], password: PASSWORD }),
    refused: openWithPassword('verify-email', BAD_LINK),
    leaves: (world) => begunAtFirstProof(world, provenByOwner(world)),
  },
  'verify-email by the page, choosing a password': {
    start: { tickets: ['verify-email'] },
    deed: ({ tickets }) =>
      post('/verify-email', { token: tickets['verify-email'], newPassword: PASSWORDS.chosen }),
    // It is for the first proof, and no other way to reset a password.
    refused: (now) => open('verify-email', BAD_LINK)(now) ?? (now.verified ? BAD_LINK : undefined),
    leaves: (world) => ({
      ...withoutWhatOthersAdded(world),
      ...{ password: 'chosen', mustChange: false, sessions: ['new'] },
    }),
    revokesAs: 'verify-email by the link alone, signing in',
  },
  'verify-email by the button, in the own session': {
    start: { tickets: ['verify-email'] },
    deed: ({ tickets }, me) => post('/confirm/verify-email', { token: tickets['verify-email'] }, me),
    refused: (now, me) =>
      open('verify-email', BAD_LINK)(now) ??
      (alive(now, me) === undefined ? undefined : [400, 'PASSWORD_REQUIRED']),
    leaves: provenByOwner,
  },
  'a verification mail': {
    deed: ({ email }) => ({ call: ({ service }) => mailVerification(service.kernel, email, undefined) }),
    refused: () => undefined,
    leaves: (world) =>
      world.user === 'there' && !world.verified && world.address === 'own'
        ? { ...world, tickets: plus(world.tickets, 'verify-email') }
        : world,
  },
  'a reset mail': {
    deed: ({ email }) => ({ call: ({ service }) => mailReset(service.kernel, email, undefined) }),
    refused: () => undefined,
    leaves: (world) =>
      world.user === 'there' && world.address === 'own'
        ? { ...world, tickets: plus(world.tickets, 'reset-password') }
        : world,
  },
  'reset-password': {
    start: { tickets: ['reset-password'] },
    deed: ({ tickets }) =>
      post('/reset-password', { newPassword: PASSWORDS.reset, token: tickets['reset-password'] }),
    refused: open('reset-password', BAD_RESET),
    leaves: wasReset,
    column: 'O',
  },
  'reset-password by the button': {
    start: { tickets: ['reset-password'] },
    deed: ({ tickets }) =>
      post('/confirm/reset-password', { newPassword: PASSWORDS.reset, token: tickets['reset-password'] }),
    // The page is of no use any more, or what its button does.
    refused: (now, _me, before) =>
      open('reset-password', BAD_LINK)(before) ?? open('reset-password', BAD_RESET)(now),
    leaves: wasReset,
    revokesAs: 'reset-password',
  },
  'change-password': {
    deed: (_person, me) =>
      post('/change-password', { currentPassword: PASSWORD, newPassword: PASSWORDS[`changed by ${me}`] }, me),
    refused: aliveWithPassword,
    leaves: (world, me) => noTickets({ ...world, password: `changed by ${me}`, mustChange: false }),
    column: 'O',
  },
  'change-password that revokes': {
    deed: (_person, me) => {
      const newPassword = PASSWORDS[`changed by ${me}`]
      const body = { currentPassword: PASSWORD, newPassword, revokeOtherSessions: true }
      return post('/change-password', body, me)
    },
    refused: aliveWithPassword,
    leaves: (world, me) => noTickets({ ...world, password: `changed by ${me}`, sessions: [`${me} renewed`] }),
    column: 'O',
  },
  'set-password': {
    start: { password: null },
    deed: (_person, me) => post('/set-password', { newPassword: PASSWORDS.set }, me),
    refused: (now, me) =>
      alive(now, me) ?? (now.password === null ? undefined : [400, 'PASSWORD_ALREADY_SET']),
    leaves: (world) => noTickets({ ...world, password: 'set' }),
    revokesAs: 'change-password',
  },
  'change-email, asked for': {
    deed: ({ email }, me) => post('/change-email', { newEmail: newAddress(email, me) }, me),
    refused: alive,
    // A newer one takes the place of the older; an address that is proven has to allow it.
    leaves: (world, me) => {
      const ticket = world.verified ? `confirm-change-email of ${me}` : `change-email of ${me}`
      return { ...world, tickets: plus(without(world.tickets, ...CHANGES), ticket) }
    },
  },
  'change-email by password, asked for': {
    start: { verified: true },
    deed: ({ email }, me) =>
      post('/change-email', { newEmail: newAddress(email, me), password: PASSWORD }, me),
    refused: aliveWithPassword,
    leaves: (world, me) => ({
      ...world,
      tickets: plus(without(world.tickets, ...CHANGES), `change-email of ${me}`),
    }),
  },
  'change-email, confirmed by the old address': {
    start: { tickets: ['confirm-change-email of S'] },
    deed: ({ tickets }) => get(`/verify-email?token=${tickets['confirm-change-email of S']}`),
    refused: open('confirm-change-email of S', BAD_LINK),
    leaves: (world) => ({
      ...world,
      tickets: plus(without(world.tickets, 'confirm-change-email of S'), 'change-email of S'),
    }),
  },
  'change-email, confirmed by the button': {
    start: { tickets: ['confirm-change-email of S'] },
    deed: ({ tickets }) => post('/confirm/change-email', { token: tickets['confirm-change-email of S'] }),
    refused: open('confirm-change-email of S', BAD_LINK),
    leaves: (world) => ({
      ...world,
      tickets: plus(without(world.tickets, 'confirm-change-email of S'), 'change-email of S'),
    }),
  },
  'change-email, done by the button, in the own session': {
    start: { tickets: ['change-email of S', 'change-email of O'] },
    deed: ({ tickets }, me) => post('/confirm/change-email', { token: tickets[`change-email of ${me}`] }, me),
    refused: (now, me) => open(`change-email of ${me}`, BAD_LINK)(now),
    leaves: (world, me) => noTickets({ ...world, address: `new of ${me}`, verified: true }),
    revokesAs: 'change-email, done',
  },
  'change-email, done by the page, with the password': {
    start: { tickets: ['change-email of S', 'change-email of O'] },
    deed: ({ tickets }, me) =>
      post('/verify-email', { token: tickets[`change-email of ${me}`], password: PASSWORD }),
    refused: (now, me, before) => openWithPassword(`change-email of ${me}`, BAD_LINK)(now, me, before),
    leaves: (world, me) => noTickets({ ...world, address: `new of ${me}`, verified: true }),
    revokesAs: 'change-email, done',
  },
  'change-email, done by the page, choosing a password': {
    start: { tickets: ['change-email of S', 'change-email of O'] },
    deed: ({ tickets }, me) =>
      post('/verify-email', { token: tickets[`change-email of ${me}`], newPassword: PASSWORDS.chosen }),
    refused: (now, me) => open(`change-email of ${me}`, BAD_LINK)(now),
    leaves: (world, me) => ({ ...taken(world, me), password: 'chosen', mustChange: false }),
    revokesAs: 'verify-email by the link alone, signing in',
  },
  'change-email, done': {
    start: { tickets: ['change-email of S', 'change-email of O'] },
    deed: ({ tickets }, me) => get(`/verify-email?token=${tickets[`change-email of ${me}`]}`, me),
    refused: (now, me) => open(`change-email of ${me}`, BAD_LINK)(now),
    leaves: (world, me) => noTickets({ ...world, address: `new of ${me}`, verified: true }),
    column: 'O',
  },
  'change-email, done by the link alone': {
    start: { tickets: ['change-email of S', 'change-email of O'] },
    deed: ({ tickets }, me) => get(`/verify-email?token=${tickets[`change-email of ${me}`]}`),
    refused: (now, me) => open(`change-email of ${me}`, BAD_LINK)(now),
    leaves: (world, me) => ({ ...taken(world, me), mustChange: world.password !== null }),
    revokesAs: 'verify-email by the link alone, signing in',
  },
  'update-user': {
    deed: (_person, me) => post('/update-user', { name: `Ada of ${me}` }, me),
    refused: alive,
    leaves: (world, me) => ({ ...world, name: `Ada of ${me}` }),
  },
  'unlink-account': {
    deed: (_person, me) => post('/unlink-account', { providerId: 'github' }, me),
    refused: (now, me) =>
      alive(now, me) ??
      (now.linked ? undefined : [404, 'ACCOUNT_NOT_FOUND']) ??
      (now.password === null ? [400, 'FAILED_TO_UNLINK_LAST_ACCOUNT'] : undefined),
    leaves: (world) => ({ ...world, linked: false }),
  },
  'delete-user in a fresh session': {
    deed: (_person, me) => post('/delete-user', {}, me),
    refused: alive,
    leaves: gone,
    revokesAs: 'delete-user by password',
  },
  'delete-user by password': {
    deed: (_person, me) => post('/delete-user', { password: PASSWORD }, me),
    refused: aliveWithPassword,
    leaves: gone,
    column: 'O',
  },
  'delete-user by mail, asked for': {
    stale: true,
    deed: (_person, me) => post('/delete-user', {}, me),
    refused: alive,
    leaves: (world, me) => ({ ...world, tickets: plus(world.tickets, `delete-user of ${me}`) }),
  },
  'delete-user by token': {
    deed: ({ tickets }, me) => post('/delete-user', { token: tickets[`delete-user of ${me}`] }, me),
    refused: (now, me) => alive(now, me) ?? open(`delete-user of ${me}`, BAD_RESET)(now),
    leaves: gone,
    revokesAs: 'delete-user by password',
  },
  'delete-user by link': {
    deed: ({ tickets }, me) => get(`/delete-user/callback?token=${tickets[`delete-user of ${me}`]}`, me),
    refused: (now, me) => alive(now, me) ?? open(`delete-user of ${me}`, BAD_RESET)(now),
    leaves: gone,
    revokesAs: 'delete-user by password',
  },
  'delete-user by the button': {
    deed: ({ tickets }, me) => post('/confirm/delete-user', { token: tickets[`delete-user of ${me}`] }, me),
    refused: (now, me, before) =>
      open(`delete-user of ${me}`, BAD_LINK)(before) ??
      alive(now, me) ??
      open(`delete-user of ${me}`, BAD_RESET)(now),
    leaves: gone,
    revokesAs: 'delete-user by password',
  },
  'delete-user by the button, with the password': {
    deed: ({ tickets }, me) =>
      post('/confirm/delete-user', { token: tickets[`delete-user of ${me}`], password: PASSWORD }),
    refused: (now, me, before) => openWithPassword(`delete-user of ${me}`, BAD_RESET)(now, me, before),
    leaves: gone,
    revokesAs: 'delete-user by password',
  },
  'revoke-session': {
    deed: ({ sessions }, me) => post('/revoke-session', { token: `sh_${sessions[other(me)].id}` }, me),
    refused: alive,
    leaves: (world, me) => ended(world, other(me), `${other(me)} renewed`),
    column: 'O',
  },
  'revoke-sessions': {
    deed: (_person, me) => post('/revoke-sessions', {}, me),
    refused: alive,
    leaves: (world) => noTickets({ ...world, sessions: [] }),
    column: 'O',
  },
  'revoke-other-sessions': {
    deed: (_person, me) => post('/revoke-other-sessions', {}, me),
    refused: alive,
    leaves: (world, me) => ended(world, other(me), `${other(me)} renewed`, 'new'),
    column: 'O',
  },
  'sign-out': {
    deed: (_person, me) => post('/sign-out', {}, me),
    refused: alive,
    leaves: (world, me) => ended(world, me),
    // Another request of the very session that acts.
    column: 'S',
  },
  ban: {
    deed: ({ id }) => ({
      call: ({ service }) => banUser(service.kernel, id, { reason: null, expires: null }),
    }),
    refused: isThere,
    leaves: (world) => noTickets({ ...world, user: 'banned', sessions: [] }),
    column: 'O',
  },
  'a password by the operator': {
    deed: ({ id }) => ({ call: ({ service }) => setPasswordByOperator(service.kernel, id, PASSWORDS.set) }),
    refused: isThere,
    leaves: (world) => noTickets({ ...world, password: 'set', mustChange: false, sessions: [] }),
    revokesAs: 'reset-password',
  },
  'a deletion by the operator': {
    deed: ({ id }) => ({ call: ({ service }) => deleteByOperator(service.kernel, id) }),
    refused: isThere,
    leaves: gone,
    revokesAs: 'delete-user by password',
  },
  'lift a ban': {
    deed: ({ id }) => ({ call: ({ service }) => unbanUser(service.kernel, id) }),
    refused: isThere,
    leaves: (world) => ({ ...world, user: 'there' }),
  },
  'set-role': {
    start: { role: 'admin' },
    deed: ({ id }) => ({ call: ({ service }) => setRole(service.kernel, id, 'user') }),
    refused: isThere,
    leaves: (world) => ({ ...world, role: 'user' }),
    column: 'O',
  },
} as const satisfies Record<string, Verb>

export type VerbName = keyof typeof VERBS

/** Routes of the surface that act on no user who is there, and why. */
export const EXEMPT: Readonly<Record<string, string>> = {
  'GET /api/auth/ok': 'reads',
  'GET /api/auth/error': 'reads',
  'GET /api/auth/get-session': 'reads',
  'POST /api/auth/get-session': 'reads',
  'GET /api/auth/list-sessions': 'reads',
  'GET /api/auth/list-accounts': 'reads',
  'GET /api/auth/reset-password/{token}': 'reads: the token is used up by the POST',
  'GET /api/auth/confirm/verify-email': 'reads: its button acts',
  'GET /api/auth/confirm/change-email': 'reads: its button acts',
  'GET /api/auth/confirm/delete-user': 'reads: its button acts',
  'GET /api/auth/confirm/reset-password': 'reads: its button acts',
  'POST /api/auth/is-username-available': 'reads',
  'POST /api/auth/sign-up/email': 'its user is of its own transaction',
  'POST /api/auth/send-verification-email': 'leaves it to the queue, row "a verification mail"',
  'POST /api/auth/forget-password': 'leaves it to the queue, row "a reset mail"',
  'POST /api/auth/request-password-reset': 'leaves it to the queue, row "a reset mail"',
}
