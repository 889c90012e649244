import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { actOnAddressTicket } from '#identity/act.ts'
import { auditRecord } from '#kernel/audit/record-act.ts'
import type { Db } from '#kernel/db/connect.ts'
import { atomically, type Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { testKernel } from '#test/harness.ts'
import { applyBan } from './bans.ts'
import { noteDevice } from './known-devices.ts'
import { deleteSession, insertSession } from './sessions.ts'
import { NOTHING_SHOWN } from './shown.ts'
import { untold } from './tell.ts'
import type { TicketPurpose, UserPurpose } from './ticket-purposes.ts'
import {
  deleteExpiredTickets,
  deleteTickets,
  findTicket,
  issueTicket,
  redeemAnonymousTicket,
  redeemTicket,
} from './tickets.ts'
import { findUser, insertUserWithPassword, type User, updateUser } from './users.ts'

const kernel = await testKernel()
const HOUR = 3_600_000

let count = 0
const user = (): Promise<User> => addUser(kernel.db, `${++count}@example.com`)

function addUser(db: Db, email: string): Promise<User> {
  const id = uuidv7(kernel.now(), kernel.random)
  const facts = {
    id,
    name: 'Ada',
    email,
    emailVerified: false,
    image: null,
    username: null,
    displayUsername: null,
  }
  const credential = { id: uuidv7(kernel.now(), kernel.random), password: 'x' }
  return insertUserWithPassword(db, { ...facts, createdAt: kernel.now() }, credential)
}
const issue = ({ id, email }: User, lifetime = HOUR) =>
  issueTicket(kernel, 'reset-password', {
    userId: id,
    sessionId: null,
    address: email,
    lifetime,
    payload: {},
  })
const redeem = (user: User, token: string, ...purposes: UserPurpose[]) =>
  redeemTicket(kernel, user, purposes.length === 0 ? ['reset-password'] : purposes, token)
const find = (token: string, purpose: TicketPurpose = 'reset-password') =>
  findTicket(kernel, [purpose], token)

test('of many concurrent redemptions of one ticket exactly one succeeds', async () => {
  const ada = await user()
  const token = await issue(ada)
  const redeemed = await Promise.all(Array.from({ length: 50 }, () => redeem(ada, token)))
  const won = redeemed.filter((ticket) => ticket !== undefined)
  const { id: userId, email: address } = ada
  assert.deepEqual(won, [
    { purpose: 'reset-password', userId, sessionId: null, address, payload: {}, attempts: 0, expired: false },
  ])
  assert.equal(await redeem(ada, token), undefined)
})

test('a ticket is not valid for another purpose, and stays valid after the attempt', async () => {
  const ada = await user()
  const token = await issue(ada)
  assert.equal(await redeem(ada, token, 'verify-email', 'delete-user', 'change-email'), undefined)
  assert.equal(await find(token, 'verify-email'), undefined)
  assert.equal((await find(token))?.expired, false)
  assert.equal((await redeem(ada, token))?.userId, ada.id)
})

test('the payload comes back unchanged', async () => {
  const ada = await user()
  const payload = { newEmail: 'new"\\@example.com', callbackURL: '/a?b=c#d' }
  const asked = { userId: ada.id, sessionId: null, address: ada.email, lifetime: HOUR, payload }
  const token = await issueTicket(kernel, 'confirm-change-email', asked)
  const ticket = await redeem(ada, token, 'confirm-change-email', 'change-email')
  assert.deepEqual([ticket?.purpose, ticket?.payload], ['confirm-change-email', payload])
})

test('an expired ticket says so, and redeeming it consumes it', async () => {
  const ada = await user()
  const token = await issue(ada, -1)
  assert.equal((await find(token))?.expired, true)
  assert.equal((await redeem(ada, token))?.expired, true)
  assert.equal(await redeem(ada, token), undefined)
})

test('a ticket for a former address of the user is not valid; one for a new address is', async () => {
  const ada = await user()
  const [reset, renamed] = [await issue(ada), { ...ada, email: `new-${ada.email}` }]
  const change = await issueTicket(kernel, 'change-email', {
    ...{ userId: ada.id, sessionId: null, lifetime: HOUR, payload: {} },
    address: renamed.email,
  })
  assert.equal((await find(change, 'change-email'))?.address, renamed.email)
  await updateUser(kernel.db, ada.id, { email: renamed.email }, kernel.now())
  assert.deepEqual([await find(reset), await redeem(ada, reset)], [undefined, undefined])
  await updateUser(kernel.db, ada.id, { email: 'third@example.com' }, kernel.now())
  assert.equal((await redeem(ada, change, 'change-email'))?.address, renamed.email)
})

test('a ticket ends with the session that asked for it, by deletion or expiry', async () => {
  const ada = await user()
  const asked = async (lifetime: number) => {
    const id = uuidv7(kernel.now(), kernel.random)
    const createdAt = kernel.now()
    const expiresAt = new Date(createdAt.getTime() + lifetime)
    const more = { createdAt, expiresAt, remembered: true, ipAddress: null, userAgent: null }
    const session = { id, userId: ada.id, tokenHash: kernel.random(32), ...more, ...NOTHING_SHOWN }
    const record = auditRecord(kernel, 'user.signed_in', { targetId: ada.id })
    const device = noteDevice(kernel, ada, undefined)
    await insertSession(kernel.db, session, { max: 100, device, organization: sql`null`, record })
    const ticket = { userId: ada.id, sessionId: id, address: ada.email, lifetime: HOUR, payload: {} }
    return { id, token: await issueTicket(kernel, 'delete-user', ticket) }
  }
  const [alive, late, ended] = [await asked(HOUR), await asked(-1), await asked(HOUR)]
  await deleteSession(kernel.db, ended.id)
  assert.equal(await find(ended.token, 'delete-user'), undefined)
  assert.equal((await find(late.token, 'delete-user'))?.expired, true)
  assert.equal((await redeem(ada, late.token, 'delete-user'))?.expired, true)
  const { sessionId, expired } = (await redeem(ada, alive.token, 'delete-user')) ?? {}
  assert.deepEqual([sessionId, expired], [alive.id, false])
})

test('the table holds no token, and no stored value is accepted as one', async () => {
  const ada = await user()
  const token = await issue(ada)
  const row = await kernel.db
    .selectFrom('verification')
    .selectAll()
    .orderBy('createdAt', 'desc')
    .executeTakeFirstOrThrow()
  assert.equal(row.valueHash.length, 32)
  assert.doesNotMatch(JSON.stringify(row), new RegExp(token))
  for (const text of [
    row.valueHash.toString('base64url'),
    row.valueHash.toString('hex'),
    '',
    'x',
    `${token}=`,
    ` ${token}`,
  ])
    assert.equal(await redeem(ada, text), undefined, text)
})

test('all tickets of a user are deleted together, those of others stay', async () => {
  const [ada, bob] = [await user(), await user()]
  const [one, two, other] = [await issue(ada), await issue(ada), await issue(bob)]
  await deleteTickets(kernel.db, ada)
  assert.deepEqual([await redeem(ada, one), await redeem(ada, two)], [undefined, undefined])
  assert.equal(await redeem(ada, other), undefined, 'the ticket of another user')
  assert.equal((await redeem(bob, other))?.userId, bob.id)
})

/** No feature has a purpose of an address yet, so the type of such purposes is `never`. */
const SIGN_IN = 'sign in by a link' as never
const issueTo = (address: string) =>
  issueTicket(kernel, SIGN_IN, {
    ...{ userId: null, sessionId: null, address },
    ...{ lifetime: HOUR, payload: {} },
  } as never)
const refused = new Error('refused')
const addUntold = (kernel: Kernel, address: string) => {
  untold(kernel, 'a test')
  return addUser(kernel.db, address)
}
/** Finds the user of the address, and adds one when there is none. */
const follow = (token: string, address: string) =>
  actOnAddressTicket(
    kernel,
    { purposes: [SIGN_IN], token },
    () => refused,
    async (kernel, found) => (found ?? (await addUntold(kernel, address))).id,
  )

test('of many concurrent redemptions of two tickets of one address each ticket succeeds once, and one account is added', async () => {
  const address = 'new@example.com'
  const tokens = [await issueTo(address), await issueTo(address)]
  const clicks = Array.from({ length: 40 }, (_, index) => tokens[index % 2] ?? '')
  const outcomes = await Promise.allSettled(clicks.map((token) => follow(token, address)))
  const won = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
  const why = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
  assert.deepEqual([won.length, new Set(won).size, new Set(why)], [2, 1, new Set([refused])])
})

test('a ticket of an address finds the account that has been added since, unless it is banned', async () => {
  const token = await issueTo('later@example.com')
  const { id } = await addUser(kernel.db, 'later@example.com')
  const ban = { reason: null, expires: null }
  const early = await issueTo('later@example.com')
  assert.equal(await follow(token, 'later@example.com'), id)
  assert.equal((await find(early, SIGN_IN))?.userId, null)
  const later = await findUser(kernel.db, 'id', id)
  assert.ok(later)
  await atomically(kernel, (kernel) => applyBan(kernel, later, ban))
  assert.equal(await find(early, SIGN_IN), undefined, 'ended by the ban')
  const late = await issueTo('later@example.com')
  await assert.rejects(follow(late, 'later@example.com'), refused)
  assert.equal((await find(late, SIGN_IN))?.expired, false)
})

test('a sign-up that adds the account during a redemption is found, and the ticket is redeemed all the same', async () => {
  const address = 'quick@example.com'
  const link = { purposes: [SIGN_IN], token: await issueTo(address) }
  const seen: (string | undefined)[] = []
  const { id } = await actOnAddressTicket(
    kernel,
    link,
    () => refused,
    async (inner, found) => {
      // Another connection: the sign-up of the same moment.
      if (seen.push(found?.email) === 1) await addUser(kernel.db, address)
      return found ?? addUntold(inner, address)
    },
  )
  const added = await kernel.db.selectFrom('user').select('id').where('email', '=', address).execute()
  assert.deepEqual([seen, added], [[undefined, address], [{ id }]])
  assert.equal(await find(link.token, SIGN_IN), undefined)
})

test('a ticket of an address is deleted with those of its user, and not with those of another', async () => {
  const [ada, bob] = [await user(), await user()]
  const [own, other] = [await issueTo(ada.email), await issueTo(bob.email)]
  await deleteTickets(kernel.db, ada)
  assert.equal(await find(own, SIGN_IN), undefined)
  assert.equal((await find(other, SIGN_IN))?.address, bob.email)
})

test('a ticket of an address is not accepted as one of a user, nor one of a user as one of an address', async () => {
  const ada = await user()
  const [byAddress, byUser] = [await issueTo(ada.email), await issue(ada)]
  assert.equal(await redeem(ada, byAddress, SIGN_IN), undefined)
  const link = { purposes: ['reset-password' as never], token: byUser }
  await assert.rejects(
    actOnAddressTicket(
      kernel,
      link,
      () => refused,
      async () => {},
    ),
    refused,
  )
  assert.deepEqual([(await find(byAddress, SIGN_IN))?.expired, (await find(byUser))?.expired], [false, false])
})

const issueAnonymous = (lifetime = HOUR) =>
  issueTicket(kernel, 'social-sign-in', {
    ...{ userId: null, sessionId: null, address: null, lifetime },
    payload: { provider: 'acme', browser: 'x', codeVerifier: 'x', scopes: [] },
  })
const redeemAnonymous = (token: string) => redeemAnonymousTicket(kernel, ['social-sign-in'], token)

test('of many concurrent redemptions of a ticket of nobody exactly one succeeds', async () => {
  const token = await issueAnonymous()
  const redeemed = await Promise.all(Array.from({ length: 50 }, () => redeemAnonymous(token)))
  const won = redeemed.filter((ticket) => ticket !== undefined)
  assert.deepEqual(
    won.map(({ userId, address, payload, expired }) => [userId, address, payload.provider, expired]),
    [[null, null, 'acme', false]],
  )
})

test('a ticket of nobody is not accepted as one of a user or of an address, outlives every user, and expires', async () => {
  const ada = await user()
  const [token, late] = [await issueAnonymous(), await issueAnonymous(-1)]
  assert.equal(await redeem(ada, token, 'social-sign-in' as never), undefined)
  assert.equal(await redeemAnonymous(await issue(ada)), undefined)
  await assert.rejects(follow(token, ada.email), refused)
  await deleteTickets(kernel.db, ada)
  assert.equal((await redeemAnonymous(token))?.expired, false)
  assert.equal((await redeemAnonymous(late))?.expired, true)
})

test('the table refuses a ticket of a user without an address', async () => {
  const { id: userId } = await user()
  const ticket = { userId, sessionId: null, address: null as never, lifetime: HOUR, payload: {} }
  await assert.rejects(issueTicket(kernel, 'reset-password', ticket), /verification_address_check/)
})

test('pruning deletes expired tickets in batches, and no others', async () => {
  await kernel.db.deleteFrom('verification').execute()
  const ada = await user()
  for (let round = 0; round < 5; round++) await issue(ada, -1_000)
  const alive = await issue(ada)
  assert.equal(await deleteExpiredTickets(kernel.db, kernel.now(), 3), 3)
  assert.equal(await deleteExpiredTickets(kernel.db, kernel.now(), 3), 2)
  assert.equal(await deleteExpiredTickets(kernel.db, kernel.now(), 3), 0)
  assert.equal((await redeem(ada, alive))?.userId, ada.id)
})
