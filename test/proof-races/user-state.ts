import { hash } from '@node-rs/argon2'
import { sql } from 'kysely'
import { codeHashesOf } from '#auth/mailing/link-code.ts'
import { parseHash } from '#identity/hashes/parse-hash.ts'
import { hashPassword } from '#identity/passwords.ts'
import { PROVIDER_TOKEN, tokenColumns } from '#identity/provider-tokens.ts'
import type { TicketPurpose } from '#identity/ticket-purposes.ts'
import { tokenHash } from '#identity/tokens.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken, uuidv7 } from '#kernel/random.ts'
import { type Credential, coseKeyOf, createAuthenticator } from '#test/authenticator.ts'
import { PASSWORD } from '#test/harness.ts'
import { REFRESHED } from '#test/token-server.ts'
import { approvalBy, insertDevices, newCode } from './devices.ts'
import { type FactorState, insertFactors, NO_FACTOR, readFactors } from './second-factor.ts'

/** One of the user's two sessions. */
export type Who = 'S' | 'O'

/** The state of a user, as expected by the table and as read from the database. */
export type UserState = FactorState & {
  readonly user: 'there' | 'banned' | 'gone'
  readonly role: string
  readonly name: string
  readonly verified: boolean
  readonly address: 'own' | `new of ${Who}`
  /** The current password. `old form`: the first one, hashed with other parameters. */
  readonly password: Password | null
  /** The password must be changed before the next sign-in. */
  readonly mustChange: boolean
  /** A second sign-in method is linked. `refreshed`: with tokens of a refresh. */
  readonly linked: boolean | 'refreshed'
  /** Names of the passkeys. `first`: one that the user has at the start. */
  readonly passkeys: readonly string[]
  /** Active sessions. `S renewed`: session S with a new token. `new`: a session that began later, `new from S` with a token of S. */
  readonly sessions: readonly string[]
  /** Open tickets, for example `reset-password` or `change-email of S`. */
  readonly tickets: readonly string[]
}
export type Password = 'first' | 'old form' | keyof typeof PASSWORDS

export const PASSWORDS = {
  'changed by S': 'changed by the one',
  'changed by O': 'changed by the other',
  reset: 'reset by the owner',
  set: 'set for the first time',
  chosen: 'chosen on the page',
} as const

const DAY = 86_400_000

export const START: UserState = {
  user: 'there',
  role: 'user',
  name: 'Ada',
  verified: false,
  address: 'own',
  password: 'first',
  mustChange: false,
  linked: true,
  passkeys: [],
  ...NO_FACTOR,
  sessions: ['O', 'S'],
  tickets: ['delete-user of O', 'delete-user of S'],
}

/** A user in the database, with the secrets that a test needs. */
export type TestUser = {
  readonly id: string
  readonly email: string
  readonly username: string
  readonly sessions: Readonly<Record<Who, { readonly id: string; readonly token: string }>>
  readonly tickets: Readonly<Record<string, string>>
  readonly stored: string | null
  readonly passkey: TestPasskey
  /** Of a device that waits for an answer. */
  readonly userCode: string
  /** Another user, who is an admin and acts in no other cell. */
  readonly admin: { readonly id: string; readonly sessionId: string; readonly token: string }
}

/** Requests with the user's first passkey and with a new one. */
export type TestPasskey = {
  readonly id: string
  readonly credential: Credential
  readonly signIn: object
  registration(who: Who): object
}

/** Of every mailed ticket that has one. */
export const MAILED_CODE = '287082'
const WITH_CODE: ReadonlySet<TicketPurpose> = new Set([
  ...(['verify-email', 'confirm-change-email', 'change-email', 'reset-password', 'sign-in'] as const),
])

export const newAddress = (email: string, who: Who): string => `${who.toLowerCase()}.${email}`

/** `age` is the age of both sessions in milliseconds. */
export type Setup = { readonly state: UserState; readonly age: number }

/** Creates the users of many cells, with one statement for each table. */
export async function createUsers(
  kernel: Kernel,
  setups: readonly Setup[],
  stored: Stored,
): Promise<readonly TestUser[]> {
  const { db, now, random, secrets } = kernel
  const at = now()
  const times = { createdAt: at, updatedAt: at }
  // Ways of signing in that are newer than a session prove nothing in it.
  const before = new Date(at.getTime() - 30 * DAY)
  const people = setups.map(({ state, age }) => {
    const id = uuidv7(at, random)
    const username = `u_${id.slice(-12)}`
    const email = `${username}@example.com`
    const newSession = () => ({ id: uuidv7(at, random), token: randomToken(random) })
    const sessions = { S: newSession(), O: newSession() }
    const tickets = Object.fromEntries(state.tickets.map((name) => [name, randomToken(random)]))
    const hash = state.password === null ? null : stored[state.password === 'old form' ? 'old form' : 'first']
    const passkey = createPasskey(kernel, id, tickets)
    const admin = { id: uuidv7(at, random), sessionId: uuidv7(at, random), token: randomToken(random) }
    const userCode = newCode(kernel)
    return { state, age, id, username, email, sessions, tickets, stored: hash, passkey, userCode, admin }
  })
  await db
    .insertInto('user')
    .values(
      people.map(({ state, id, username, email }) => ({
        ...{ id, username, email, displayUsername: username, ...times },
        ...{ name: state.name, role: state.role },
        ...{ emailVerified: state.verified, emailProvenAt: state.verified ? times.createdAt : null },
        twoFactorEnabled: state.factor !== 'none',
      })),
    )
    .execute()
  await db
    .insertInto('account')
    .values(
      people.flatMap(({ id: userId, state: { linked }, stored: password }) => {
        const account = { userId, accountId: userId, createdAt: before, updatedAt: at }
        const id = uuidv7(at, random)
        const tokens = { accessToken: 'expired', refreshToken: userId, accessTokenExpiresAt: at }
        const github = { ...account, id, providerId: 'github', ...tokenColumns(secrets, id, tokens) }
        const credential = { ...account, id: uuidv7(at, random), providerId: 'credential', password }
        return [...(linked ? [github] : []), ...(password === null ? [] : [credential])]
      }),
    )
    .execute()
  await db
    .insertInto('session')
    .values(
      people.flatMap(({ id: userId, age, sessions }) =>
        Object.values(sessions).map(({ id, token }) => ({
          ...{ id, userId, tokenHash: tokenHash(token), remembered: true },
          ...{ createdAt: new Date(at.getTime() - age), updatedAt: at },
          ...allShown(new Date(at.getTime() - age)),
          expiresAt: new Date(at.getTime() + DAY),
        })),
      ),
    )
    .execute()
  await insertPasskeys(kernel, people)
  await insertAdmins(kernel, people)
  await insertDevices(kernel, people)
  await insertFactors(kernel, people)
  const ids = people.map(({ id }) => id)
  const userHad = sql<string[]>`service.methods_of(user_id)`
  await db.updateTable('session').set({ userHad }).where('userId', 'in', ids).execute()
  await db
    .insertInto('verification')
    .values(
      people.flatMap(({ id: userId, email, sessions, tickets, admin }) =>
        Object.entries(tickets).map(([name, token]) => ({
          ...{ userId: name === 'sign-in' ? null : userId, valueHash: tokenHash(token), createdAt: at },
          ...ticketOf(kernel, name, email, sessions, admin.id),
        })),
      ),
    )
    .execute()
  return people
}

/** The sessions meet every demand, unless they are too old: refusals are those of proofs that do not hold any more. */
const allShown = (at: Date) => ({
  shown: ['password', 'totp', 'passkey', 'provider:github'],
  ...{ authTime: at, passwordShownAt: at, factorShownAt: at },
})

async function insertAdmins({ db, now }: Kernel, people: readonly Pick<TestUser, 'admin'>[]): Promise<void> {
  const at = now()
  const times = { createdAt: at, updatedAt: at }
  const admins = people.map(({ admin }) => admin)
  await db
    .insertInto('user')
    .values(
      admins.map(({ id }) => ({ id, email: `${id}@example.com`, name: 'Admin', role: 'admin', ...times })),
    )
    .execute()
  await db
    .insertInto('session')
    .values(
      admins.map(({ id: userId, sessionId: id, token }) => ({
        ...{ id, userId, tokenHash: tokenHash(token), remembered: true, ...times },
        expiresAt: new Date(at.getTime() + DAY),
      })),
    )
    .execute()
}

const CHALLENGE = 'A'.repeat(43)

function createPasskey(
  { now, random, publicUrl }: Kernel,
  userId: string,
  tickets: TestUser['tickets'],
): TestPasskey & { readonly challengeId: string } {
  const [authenticator, other] = [createAuthenticator(), createAuthenticator()]
  const user = { id: Buffer.from(userId).toString('base64url') }
  const options = { challenge: CHALLENGE, rp: { id: 'localhost' }, rpId: 'localhost', user }
  authenticator.create(options, publicUrl())
  const [credential] = authenticator.credentials
  if (credential === undefined) throw new Error('the authenticator has made no credential')
  const challengeId = randomToken(random)
  return {
    ...{ id: uuidv7(now(), random), credential, challengeId },
    signIn: { response: authenticator.get(options, publicUrl()), challengeId },
    registration: (who) => ({
      ...{ response: other.create(options, publicUrl()), name: 'new' },
      challengeId: tickets[`passkey-registration of ${who}`],
    }),
  }
}

/** The passkeys of the users' states, and a challenge for the sign-in with each. */
async function insertPasskeys(
  { db, now }: Kernel,
  people: readonly (TestUser & { readonly state: UserState; readonly passkey: { challengeId: string } })[],
): Promise<void> {
  const owners = people.filter(({ state }) => state.passkeys.length > 0)
  if (owners.length === 0) return
  const createdAt = now()
  const before = new Date(createdAt.getTime() - 30 * DAY)
  await db
    .insertInto('passkey')
    .values(
      owners.map(({ id: userId, passkey: { id, credential } }) => ({
        ...{ id, userId, createdAt: before, name: 'first', credentialId: credential.id, counter: '0' },
        ...{ publicKey: coseKeyOf(credential).toString('base64'), transports: '', backedUp: false },
        ...{ deviceType: 'singleDevice', aaguid: '00000000-0000-0000-0000-000000000000' },
      })),
    )
    .execute()
  await db
    .insertInto('verification')
    .values(
      owners.map(({ passkey: { challengeId } }) => ({
        ...{ valueHash: tokenHash(challengeId), purpose: 'passkey-sign-in', createdAt },
        ...{ payload: JSON.stringify({ challenge: CHALLENGE }), expiresAt: new Date(Date.now() + DAY) },
      })),
    )
    .execute()
}

function ticketOf(
  kernel: Kernel,
  name: string,
  email: string,
  sessions: TestUser['sessions'],
  adminId: string,
) {
  const [purpose, who] = name.split(' of ') as [TicketPurpose, Who?] // the names used in START and VERBS
  const isNew = purpose === 'change-email' && who !== undefined
  const newEmail = newAddress(email, who ?? 'S')
  const address = isNew ? newEmail : email
  const expiresAt = new Date(Date.now() + DAY)
  return {
    purpose,
    sessionId: who === undefined ? null : sessions[who].id,
    address,
    payload: JSON.stringify(payloadOf(purpose, newEmail, sessions[who ?? 'S'].token, adminId)),
    expiresAt,
    ...(WITH_CODE.has(purpose)
      ? {
          codeHash: codeHashesOf(kernel, purpose as 'sign-in', address, MAILED_CODE)[0],
          codeExpiresAt: expiresAt,
        }
      : { codeHash: null, codeExpiresAt: null }),
  }
}

function payloadOf(purpose: TicketPurpose, newEmail: string, token: string, userId: string): object {
  if (purpose === 'confirm-change-email') return { newEmail }
  const ofSession = { token: tokenHash(token).toString('base64url') }
  if (purpose === 'one-time-token') return ofSession
  if (purpose === 'impersonation-handoff') return { ...ofSession, userId }
  if (purpose === 'device-session') return approvalBy(new Date())
  if (purpose === 'passkey-registration') return { challenge: CHALLENGE }
  return purpose === 'second-factor' ? { methods: ['totp', 'otp'], remember: true } : {}
}

export type Stored = Readonly<Record<'first' | 'old form', string>>

/** Hashes of the first password: a current one, and one with old parameters, which a sign-in renews. */
export const storedHashes = async (kernel: Kernel): Promise<Stored> => ({
  first: await hashPassword(kernel, PASSWORD),
  'old form': await hash(PASSWORD, { memoryCost: 512, timeCost: 1, parallelism: 1 }),
})

/** Reads the users' states from the database. */
export async function readStates(
  kernel: Kernel,
  people: readonly TestUser[],
): Promise<ReadonlyMap<TestUser, UserState | 'gone'>> {
  const { db } = kernel
  const ids = people.map(({ id }) => id)
  const emails = people.map(({ email }) => email)
  const [users, accounts, sessions, tickets, passkeys] = await Promise.all([
    db.selectFrom('user').selectAll().where('id', 'in', ids).execute(),
    db.selectFrom('account').selectAll().where('userId', 'in', ids).execute(),
    db.selectFrom('session').selectAll().where('userId', 'in', ids).execute(),
    db
      .selectFrom('verification')
      .selectAll()
      .where((of) =>
        of.or([
          of('userId', 'in', ids),
          // Others without a user are decoys (link-code.ts): nothing redeems them.
          of.and([of('userId', 'is', null), of('purpose', '=', 'sign-in'), of('address', 'in', emails)]),
        ]),
      )
      .execute(),
    db.selectFrom('passkey').selectAll().where('userId', 'in', ids).execute(),
  ])
  const factorOf = await readFactors(kernel, ids)
  const stateOf = async (person: TestUser): Promise<UserState | 'gone'> => {
    const user = users.find(({ id }) => id === person.id)
    if (user === undefined) return 'gone'
    const own = <Row extends { userId: string | null }>(rows: readonly Row[]) =>
      rows.filter(({ userId }) => userId === person.id)
    const credential = own(accounts).find(({ providerId }) => providerId === 'credential')
    const password = credential?.password ?? null
    return {
      user: user.banned ? 'banned' : 'there',
      role: user.role,
      name: user.name,
      verified: user.emailVerified,
      address: addressOf(person, user.email),
      password: password === null ? null : await passwordOf(person, password),
      mustChange: credential?.mustChangePassword ?? false,
      linked: linkOf(
        kernel,
        own(accounts).find(({ providerId }) => providerId === 'github'),
      ),
      ...factorOf(user, person),
      passkeys: own(passkeys)
        .map(({ name }) => name ?? '')
        .toSorted(),
      sessions: own(sessions)
        .map((session) => sessionName(person, session))
        .toSorted(),
      tickets: tickets
        .filter(({ userId, address }) => (userId === null ? address === person.email : userId === person.id))
        .map((ticket) => ticketName(person, ticket))
        .toSorted(),
    }
  }
  const states = await Promise.all(people.map(stateOf))
  return new Map(people.map((person, index) => [person, states[index] ?? 'gone']))
}

type LinkedRow = { readonly id: string; readonly sealedAccessToken: string | null }

function linkOf({ secrets }: Kernel, row: LinkedRow | undefined): UserState['linked'] {
  if (row === undefined) return false
  const token = secrets.open(PROVIDER_TOKEN, row.sealedAccessToken ?? '', row.id)
  return token?.startsWith(REFRESHED) === true ? 'refreshed' : true
}

const whose = ({ sessions }: TestUser, id: string): Who | undefined =>
  (['S', 'O'] as const).find((who) => sessions[who].id === id)

function sessionName(
  person: TestUser,
  session: { readonly id: string; readonly tokenHash: Buffer; readonly originSessionId: string | null },
): string {
  const who = whose(person, session.id)
  const origin = session.originSessionId === null ? undefined : whose(person, session.originSessionId)
  if (who === undefined) return origin === undefined ? 'new' : `new from ${origin}`
  return session.tokenHash.equals(tokenHash(person.sessions[who].token)) ? who : `${who} renewed`
}

const ticketName = (
  person: TestUser,
  { purpose, sessionId }: { readonly purpose: string; readonly sessionId: string | null },
): string => (sessionId === null ? purpose : `${purpose} of ${whose(person, sessionId) ?? 'new'}`)

function addressOf({ email }: TestUser, found: string): UserState['address'] {
  const who = (['S', 'O'] as const).find((who) => found === newAddress(email, who))
  if (who === undefined && found !== email) throw new Error(`an unknown address: ${found}`)
  return who === undefined ? 'own' : `new of ${who}`
}

async function passwordOf({ stored }: TestUser, found: string): Promise<Password> {
  if (found === stored) return stored.includes('m=512') ? 'old form' : 'first'
  for (const [name, text] of Object.entries({ first: PASSWORD, ...PASSWORDS }))
    if (await parseHash(found)?.matches(text)) return name as Password // a key of the object above
  throw new Error('an unknown password')
}
