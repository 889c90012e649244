import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'
import {
  actingTurn,
  beginningOf,
  carryOut,
  columns,
  expectOpens,
  foretold,
  headersOf,
  names,
  type Outcome,
  revokingTurn,
  type Turn,
  verbOf,
} from '#test/pairs/table.ts'
import type { VerbName } from '#test/pairs/verbs.ts'
import { lookAt, makePeople, type Person, START, storedForms } from '#test/pairs/world.ts'
import { whileArriving } from '#test/slow-body.ts'

const t = await testService({ config: { auth: { email: { sign_in_after_verification: true } } } })
const { kernel } = t.service
const stored = await storedForms(kernel)
await makePeople(kernel, [{ world: { ...START, role: 'admin' }, age: 0 }], stored)

/** The next call to what is watched. */
type Next = { readonly reached: Promise<void>; release(): void }

/** Stops the next call of the function until it is released; calls after that one run. */
function stopper() {
  let next: { reach: () => void; gate: Promise<void> } | undefined
  return {
    async pass(): Promise<void> {
      const stop = next
      next = undefined
      stop?.reach()
      await stop?.gate
    },
    stopNext(): Next {
      const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
      const { promise: gate, resolve: release } = Promise.withResolvers<void>()
      next = { reach, gate }
      return { reached, release }
    },
  }
}

/** Access is judged in front of the limit of a route, and the limit in front of the body. */
const heads = stopper()
const { consume } = kernel.limits
/** Every hash is checked and made in one of the two lines. */
const hashes = stopper()
const { heavy, foreignHashes } = kernel
type Work<T> = () => Promise<T>
const stopping = (line: typeof heavy) =>
  Object.assign(
    async <T>(work: Work<T>, weight?: number) => {
      await hashes.pass()
      return line(work, weight)
    },
    { expectRoom: line.expectRoom, depth: line.depth },
  )
Object.assign(kernel, {
  heavy: stopping(heavy),
  foreignHashes: stopping(foreignHashes),
  limits: {
    ...kernel.limits,
    consume: async (...asked: Parameters<typeof consume>) => {
      await heads.pass()
      return consume(...asked)
    },
  },
})

type Play = (person: Person, acting: Turn, revoke: () => Promise<Outcome>) => Promise<[Outcome, Outcome]>
/** Whether the acting verb has read the stored hash before the revoking one changes it. */
type HashRead = 'before' | 'after'

/** Plays a row against every column, one after the other, and then looks at all of them. */
async function eachColumn(row: VerbName, read: HashRead, play: Play): Promise<void> {
  const acting = actingTurn(row)
  const cells = columns.map((column) => {
    const revoking = revokingTurn(column)
    return { column, revoking, beginning: beginningOf(acting.verb, revoking.verb) }
  })
  const people = await makePeople(
    kernel,
    cells.map(({ beginning }) => beginning),
    stored,
  )
  const played = []
  for (const [index, person] of people.entries()) {
    const cell = cells[index]
    assert.ok(cell)
    const { column, revoking, beginning } = cell
    const { world: start } = beginning
    const deed = revoking.verb.deed(person, revoking.me)
    const outcomes = await play(person, acting, () => carryOut(t, deed, person))
    const one = foretold(revoking, start, start)
    const two = foretold(acting, one.world, read === 'before' ? start : one.world)
    assert.deepEqual(outcomes, [one.outcome, two.outcome], `${column}: the answers`)
    played.push({ column, person, start, world: two.world })
  }
  const seen = await lookAt(kernel, people)
  const looks = played.map(async ({ column, person, start, world }) => {
    assert.deepEqual(seen.get(person), world.user === 'gone' ? 'gone' : world, column)
    await expectOpens(t, person, world, start)
  })
  await Promise.all(looks)
}

/** Bodies held back: whatever is let in by a session, before its body is there. */
const [nobody] = await makePeople(kernel, [beginningOf()], stored)
assert.ok(nobody)
const withSession = names.filter((name) => {
  const deed = verbOf(name).deed(nobody, 'S')
  return 'path' in deed && deed.method === 'POST' && deed.session !== undefined
})

for (const row of withSession) {
  test(`${row}: a session that is revoked while the body arrives acts no more`, () =>
    eachColumn(row, 'after', async (person, { verb, me }, revoke) => {
      const deed = verb.deed(person, me)
      assert.ok('path' in deed)
      const { path, body, session } = deed
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

/** The rows that check or make a hash, and how many. */
const HASHES: Partial<Record<VerbName, number>> = {
  'sign-in by email': 1,
  'sign-in by username': 1,
  'a hash is renewed': 1,
  'verify-email by the page, with the password': 1,
  'verify-email by the page, choosing a password': 1,
  'reset-password by the button': 1,
  'reset-password': 1,
  'change-email by password, asked for': 1,
  'change-email, done by the page, with the password': 1,
  'change-email, done by the page, choosing a password': 1,
  'change-password': 2,
  'change-password that revokes': 2,
  'set-password': 1,
  'delete-user by password': 1,
  'delete-user by the button, with the password': 1,
  'a password by the operator': 1,
}

for (const [row, count] of Object.entries(HASHES) as [VerbName, number][]) {
  for (let stop = 1; stop <= count; stop++) {
    test(`${row}: what is revoked while hash ${stop} is under way acts no more`, () =>
      eachColumn(row, 'before', async (person, { verb, me }, revoke) => {
        let slow = hashes.stopNext()
        const acting = carryOut(t, verb.deed(person, me), person)
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

test('a row that hashes is known as one', async () => {
  const counts: Record<string, number> = {}
  const passed = { count: 0 }
  const { heavy: stops } = kernel
  const counting = Object.assign((...asked: Parameters<typeof stops>) => {
    passed.count++
    return stops(...asked)
  }, stops) as typeof stops // the same function, counted
  Object.assign(kernel, { heavy: counting })
  for (const row of names) {
    const { verb, me } = actingTurn(row)
    const [person] = await makePeople(kernel, [beginningOf(verb)], stored)
    assert.ok(person)
    passed.count = 0
    await carryOut(t, verb.deed(person, me), person)
    if (passed.count > 0) counts[row] = passed.count
  }
  Object.assign(kernel, { heavy: stops })
  assert.deepEqual(counts, HASHES)
})
