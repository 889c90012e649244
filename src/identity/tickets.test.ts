import assert from 'node:assert/strict'
import { test } from 'node:test'
import { uuidv7 } from '#kernel/random.ts'
import { testKernel } from '#test/harness.ts'
import { deleteExpiredTickets, deleteTickets, issueTicket, isTicketGood, redeemTicket } from './tickets.ts'
import { insertUserWithPassword } from './users.ts'

const kernel = await testKernel()
const HOUR = 3_600_000

let count = 0
async function user(): Promise<string> {
  const id = uuidv7(kernel.now(), kernel.random)
  const facts = {
    id,
    name: 'Ada',
    email: `${++count}@example.com`,
    image: null,
    username: null,
    displayUsername: null,
  }
  const credential = { id: uuidv7(kernel.now(), kernel.random), password: 'x' }
  await insertUserWithPassword(kernel.db, { ...facts, createdAt: kernel.now() }, credential)
  return id
}
const issue = (userId: string, life = HOUR) =>
  issueTicket(kernel, 'reset-password', { userId, life, payload: {} })
const redeem = (token: string) => redeemTicket(kernel, ['reset-password'], token)

test('of many redemptions of one ticket at once exactly one gets it', async () => {
  const userId = await user()
  const token = await issue(userId)
  const redeemed = await Promise.all(Array.from({ length: 50 }, () => redeem(token)))
  const won = redeemed.filter((ticket) => ticket !== undefined)
  assert.deepEqual(won, [{ purpose: 'reset-password', userId, payload: {}, expired: false }])
  assert.equal(await redeem(token), undefined)
})

test('a ticket of one purpose is worthless for another, and not used up by the attempt', async () => {
  const userId = await user()
  const token = await issue(userId)
  assert.equal(await redeemTicket(kernel, ['verify-email', 'delete-user', 'change-email'], token), undefined)
  assert.equal(await isTicketGood(kernel, 'verify-email', token), false)
  assert.equal(await isTicketGood(kernel, 'reset-password', token), true)
  assert.equal((await redeem(token))?.userId, userId)
})

test('what it carries comes back as it was given', async () => {
  const userId = await user()
  const payload = { newEmail: 'new"\\@example.com', callbackURL: '/a?b=c#d' }
  const token = await issueTicket(kernel, 'confirm-change-email', { userId, life: HOUR, payload })
  const ticket = await redeemTicket(kernel, ['confirm-change-email', 'change-email'], token)
  assert.deepEqual([ticket?.purpose, ticket?.payload], ['confirm-change-email', payload])
})

test('a ticket that has run out says so, and is used up all the same', async () => {
  const token = await issue(await user(), -1)
  assert.equal(await isTicketGood(kernel, 'reset-password', token), false)
  assert.equal((await redeem(token))?.expired, true)
  assert.equal(await redeem(token), undefined)
})

test('the table holds no token, and what is in the table opens nothing', async () => {
  const token = await issue(await user())
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
    assert.equal(await redeem(text), undefined, text)
})

test('the tickets of a user go together, those of others stay', async () => {
  const [ada, bob] = [await user(), await user()]
  const [one, two, other] = [await issue(ada), await issue(ada), await issue(bob)]
  await deleteTickets(kernel.db, ada)
  assert.deepEqual([await redeem(one), await redeem(two)], [undefined, undefined])
  assert.equal((await redeem(other))?.userId, bob)
})

test('pruning takes what has run out, a batch at a time, and nothing else', async () => {
  await kernel.db.deleteFrom('verification').execute()
  const userId = await user()
  for (let round = 0; round < 5; round++) await issue(userId, -1_000)
  const alive = await issue(userId)
  assert.equal(await deleteExpiredTickets(kernel.db, kernel.now(), 3), 3)
  assert.equal(await deleteExpiredTickets(kernel.db, kernel.now(), 3), 2)
  assert.equal(await deleteExpiredTickets(kernel.db, kernel.now(), 3), 0)
  assert.equal((await redeem(alive))?.userId, userId)
})
