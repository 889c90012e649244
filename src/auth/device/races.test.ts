import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tokenHash } from '#identity/tokens.ts'
import { type Asked, approve, askForCodes, DEVICE_CLIENTS, deny, poll } from '#test/devices.ts'
import { type Answer, testClock, testService } from '#test/harness.ts'

const t = await testService({
  clock: testClock({ isStopped: true }),
  config: { auth: { device: { clients: DEVICE_CLIENTS } } },
})
const { db } = t.service.kernel

const sessionsOf = async (userId: string) =>
  (await db.selectFrom('session').select('id').where('userId', '=', userId).execute()).length
const statusOf = async ({ deviceCode }: Asked) =>
  (
    await db
      .selectFrom('deviceAuthorization')
      .select('status')
      .where('deviceHash', '=', tokenHash(deviceCode))
      .executeTakeFirstOrThrow()
  ).status
/** As devices do: on a busy machine some wait too long for a connection. */
async function pollUntilAnswered(asked: Asked): Promise<Answer> {
  const answer = await poll(t, asked)
  return answer.status === 503 ? pollUntilAnswered(asked) : answer
}
const counted = (answers: readonly Answer[]) =>
  Object.fromEntries(
    [...Map.groupBy(answers, ({ status, body }) => body.error ?? status)].map(([name, list]) => [
      name,
      list.length,
    ]),
  )

test('of 50 polls that fetch one approved device at once, one gets a session', async () => {
  for (let round = 0; round < 5; round++) {
    const ada = await t.signUp('Ada')
    const asked = await askForCodes(t)
    await approve(ada, asked)
    const answers = await Promise.all(Array.from({ length: 50 }, () => pollUntilAnswered(asked)))
    assert.deepEqual(counted(answers), { 200: 1, slow_down: 49 })
    assert.equal(await sessionsOf(ada.id), 2)
    const signIns = await db
      .selectFrom('auditEvent')
      .select('details')
      .where('action', '=', 'user.signed_in')
      .where('targetId', '=', ada.id)
      .execute()
    const ways = signIns.map(({ details }) => Object(details).way)
    assert.deepEqual(ways.toSorted(), ['device', 'sign-up'])
  }
})

test('of an approval and a refusal at once, one wins, and the device is told that one', async () => {
  const [ada, bob] = [await t.signUp('Ada'), await t.signUp('Bob')]
  const won = { approved: 0, denied: 0 }
  for (let round = 0; round < 12; round++) {
    const asked = await askForCodes(t)
    const both = [approve(ada, asked), deny(bob, asked)]
    const [approved, denied] = await Promise.all(round % 2 === 0 ? both : both.toReversed()).then(
      (answers) => (round % 2 === 0 ? answers : answers.toReversed()),
    )
    assert.deepEqual(counted([approved, denied] as Answer[]), { 200: 1, invalid_request: 1 })
    const status = await statusOf(asked)
    assert.equal(status, approved?.status === 200 ? 'approved' : 'denied')
    won[status as keyof typeof won]++
    const { body } = await poll(t, asked)
    assert.equal(
      typeof body.access_token === 'string' ? 'approved' : body.error,
      status === 'approved' ? status : 'access_denied',
    )
  }
  assert.equal(await sessionsOf(ada.id), 1 + won.approved)
  assert.equal(await sessionsOf(bob.id), 1)
})

test('of users who approve one device at once, one is its user', async () => {
  const users = await Promise.all(Array.from({ length: 10 }, (_, index) => t.signUp(`User${index}`)))
  const asked = await askForCodes(t)
  const answers = await Promise.all(users.map((user) => approve(user, asked)))
  assert.deepEqual(counted(answers), { 200: 1, invalid_request: 9 })
  const winner = users[answers.findIndex(({ status }) => status === 200)]
  assert.ok(winner)
  assert.equal((await poll(t, asked)).status, 200)
  assert.equal(await sessionsOf(winner.id), 2)
})

test('polls at once are all counted: each that comes too early makes the interval longer', async () => {
  const asked = await askForCodes(t)
  const answers = await Promise.all(Array.from({ length: 20 }, () => poll(t, asked)))
  assert.deepEqual(counted(answers), { authorization_pending: 1, slow_down: 19 })
  const { pollInterval } = await db
    .selectFrom('deviceAuthorization')
    .select('pollInterval')
    .where('deviceHash', '=', tokenHash(asked.deviceCode))
    .executeTakeFirstOrThrow()
  assert.equal(pollInterval, 5_000 + 19 * 5_000)
})

test('a poll beside the approval is told to wait or gets the session, and nothing is lost', async () => {
  const ada = await t.signUp('Ada')
  for (let round = 0; round < 10; round++) {
    const asked = await askForCodes(t)
    const [, polled] = await Promise.all([approve(ada, asked), poll(t, asked)])
    if (polled.status !== 200) {
      assert.equal(polled.body.error, 'authorization_pending')
      t.advance(5_000)
      assert.equal((await poll(t, asked)).status, 200)
    }
    assert.equal(await sessionsOf(ada.id), 2 + round)
  }
})
