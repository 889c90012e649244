import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'
import {
  actingTurn,
  carryOut,
  columnsOf,
  expected,
  expectOpens,
  headersOf,
  names,
  type Outcome,
  revokingTurn,
  setupOf,
  type Turn,
  verbOf,
} from '#test/proof-races/cases.ts'
import { raceSettings } from '#test/proof-races/service.ts'
import { hashStopper, stopper } from '#test/proof-races/stops.ts'
import { createUsers, readStates, START, storedHashes, type TestUser } from '#test/proof-races/user-state.ts'
import type { VerbName } from '#test/proof-races/verbs.ts'
import { whileArriving } from '#test/slow-body.ts'

const t = await testService({ config: await raceSettings() })
const { kernel } = t.service
const stored = await storedHashes(kernel)
await createUsers(kernel, [{ state: { ...START, role: 'admin' }, age: 0 }], stored)

/** Blocks at the rate limit, which runs after the access check and before the body is read. */
const heads = stopper()
const { consume } = kernel.limits
const hashes = hashStopper(kernel)
Object.assign(kernel, {
  limits: {
    ...kernel.limits,
    consume: async (...asked: Parameters<typeof consume>) => {
      await heads.pass()
      return consume(...asked)
    },
  },
})

type Play = (person: TestUser, acting: Turn, revoke: () => Promise<Outcome>) => Promise<[Outcome, Outcome]>
/** Whether the acting verb reads the stored hash before or after the revoking verb changes it. */
type HashRead = 'before' | 'after'

/** Runs a row against its columns in turn, and then checks all users. */
async function eachColumn(row: VerbName, read: HashRead, play: Play): Promise<void> {
  const acting = actingTurn(row)
  const cells = columnsOf(row).flatMap((column) => {
    const revoking = revokingTurn(column)
    if (acting.verb.stale === true && revoking.verb.needsFresh === true) return []
    return [{ column, revoking, setup: setupOf(acting.verb, revoking.verb) }]
  })
  const people = await createUsers(
    kernel,
    cells.map(({ setup }) => setup),
    stored,
  )
  const played = []
  for (const [index, person] of people.entries()) {
    const cell = cells[index]
    assert.ok(cell)
    const { column, revoking, setup } = cell
    const { state: start } = setup
    const action = revoking.verb.action(person, revoking.me)
    const outcomes = await play(person, acting, () => carryOut(t, action, person))
    const one = expected(revoking, start, start)
    const two = expected(acting, one.state, read === 'before' ? start : one.state, start)
    assert.deepEqual(outcomes, [one.outcome, two.outcome], `${column}: responses`)
    played.push({ column, person, start, state: two.state })
  }
  const seen = await readStates(kernel, people)
  const checks = played.map(async ({ column, person, start, state }) => {
    assert.deepEqual(seen.get(person), state.user === 'gone' ? 'gone' : state, column)
    await expectOpens(t, person, state, start)
  })
  await Promise.all(checks)
}

/** Verbs that are authorised by a session before their body arrives. The tests delay the body. */
const [nobody] = await createUsers(kernel, [setupOf()], stored)
assert.ok(nobody)
const withSession = names.filter((name) => {
  const action = verbOf(name).action(nobody, 'S')
  return 'path' in action && action.method === 'POST' && action.session !== undefined
})

for (const row of withSession) {
  test(`${row}: has no effect if its session is revoked while the body arrives`, () =>
    eachColumn(row, 'after', async (person, { verb, me }, revoke) => {
      const action = verb.action(person, me)
      assert.ok('path' in action)
      const { path, body, session } = action
      const head = heads.stopNext()
      let first: Outcome | undefined
      const answer = await whileArriving(
        t.url,
        { path, headers: headersOf(person, session), body },
        async () => {
          head.release()
          first = await revoke()
        },
        () => head.reached,
      )
      assert.ok(first)
      return [first, outcomeOf(answer)]
    }))
}

function outcomeOf(answer: string): Outcome {
  const status = Number(answer.split(' ', 2)[1])
  return [status, status === 200 ? undefined : /"code":"(\w+)"/.exec(answer)?.[1]]
}

/** Rows that verify or compute hashes, with the number of hashes. */
const HASHES: Partial<Record<VerbName, number>> = {
  'sign-in by email': 1,
  'sign-in by username': 1,
  'renew password hash': 1,
  'verify-email with password': 1,
  'verify-email with a new password': 1,
  'reset-password by form': 1,
  'reset-password': 1,
  'change-email, requested with password': 1,
  'change-email, completed with password': 1,
  'change-email, completed with a new password': 1,
  'change-password': 2,
  'change-password with revokeOtherSessions': 2,
  'set-password': 1,
  'two-factor, begun': 1,
  'two-factor, disabled': 1,
  'two-factor, new backup codes': 1,
  'reauthenticate by password': 1,
  'delete-user by password': 1,
  'delete-user by form, with password': 1,
  'set password as operator': 1,
  'admin/create-user': 1,
  'admin/set-user-password': 1,
}

for (const [row, count] of Object.entries(HASHES) as [VerbName, number][]) {
  for (let stop = 1; stop <= count; stop++) {
    test(`${row}: has no effect if its proof is revoked during hash ${stop}`, () =>
      eachColumn(row, 'before', async (person, { verb, me }, revoke) => {
        let slow = hashes.stopNext()
        const acting = carryOut(t, verb.action(person, me), person)
        const reach = () => Promise.race([slow.reached, acting])
        await reach()
        for (let skip = 1; skip < stop; skip++) {
          const passed = slow
          slow = hashes.stopNext()
          passed.release()
          await reach()
        }
        const first = await revoke()
        slow.release()
        return [first, await acting]
      }))
  }
}

test('the list of rows with hashes is complete', async () => {
  const counts: Record<string, number> = {}
  const passed = { count: 0 }
  const { hashQueue: stops } = kernel
  const counting = Object.assign((...asked: Parameters<typeof stops>) => {
    passed.count++
    return stops(...asked)
  }, stops) as typeof stops // counts the calls
  Object.assign(kernel, { hashQueue: counting })
  for (const row of names) {
    const { verb, me } = actingTurn(row)
    const [person] = await createUsers(kernel, [setupOf(verb)], stored)
    assert.ok(person)
    passed.count = 0
    await carryOut(t, verb.action(person, me), person)
    if (passed.count > 0) counts[row] = passed.count
  }
  Object.assign(kernel, { hashQueue: stops })
  assert.deepEqual(counts, HASHES)
})
