import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { testService } from '#test/harness.ts'
import {
  actingTurn,
  carryOut,
  columns,
  columnsOf,
  expected,
  expectOpens,
  names,
  type Outcome,
  revokingTurn,
  setupOf,
  type Turn,
  verbOf,
} from '#test/proof-races/cases.ts'
import { rowLocks } from '#test/proof-races/row-locks.ts'
import { raceSettings } from '#test/proof-races/service.ts'
import {
  createUsers,
  readStates,
  type Setup,
  START,
  storedHashes,
  type TestUser,
  type UserState,
} from '#test/proof-races/user-state.ts'
import { EXEMPT, type VerbName } from '#test/proof-races/verbs.ts'

/** Cells that run in parallel: one row. Each cell uses a connection that locks the user, and two requests. */
const AT_ONCE = 2 * Math.max(...names.map((row) => columnsOf(row).length))

const t = await testService({
  config: { database: { max_connections: 3 * AT_ONCE }, ...(await raceSettings()) },
})
const { kernel } = t.service
const stored = await storedHashes(kernel)
const locks = rowLocks(t.controlUrl, AT_ONCE)
after(() => locks.close())
// Another admin, so that no user of the table is the last one.
await createUsers(kernel, [{ state: { ...START, role: 'admin' }, age: 0 }], stored)

type Cell = {
  readonly name: string
  readonly turns: readonly [Turn, Turn]
  readonly setup: Setup
}
type PlayedCell = { readonly cell: Cell; readonly person: TestUser; readonly state: UserState }

/** The cells of a row: each of its revoking verbs commits once just before the acting verb re-checks its proof, and once right after. */
function cellsOf(row: VerbName): readonly Cell[] {
  const acting = actingTurn(row)
  return columnsOf(row).flatMap((column) => {
    const revoking = revokingTurn(column)
    if (acting.verb.stale === true && revoking.verb.needsFresh === true) return []
    const setup = setupOf(acting.verb, revoking.verb)
    return [
      { name: `after ${column}`, turns: [revoking, acting], setup },
      { name: `before ${column}`, turns: [acting, revoking], setup },
    ] satisfies Cell[]
  })
}

/**
 * Starts both verbs while the test holds the user's row lock, so that both pass their access checks in the initial state and then queue for
 * the lock. They continue in the order of the turns. Returns the user's expected final state.
 */
async function play({ turns: [first, second], setup }: Cell, person: TestUser): Promise<UserState> {
  const { state: start } = setup
  const lock = await locks.lock(person.id)
  let queued = 0
  const begin = async ({ verb, me }: Turn): Promise<{ outcome: Promise<Outcome>; waited: boolean }> => {
    const outcome = carryOut(t, verb.action(person, me), person)
    const answered = outcome.then(
      () => false,
      () => false,
    )
    const waited = await Promise.race([lock.waiting(queued + 1).then(() => true), answered])
    if (waited) queued++
    return { outcome, waited }
  }
  const [one, two] = [await begin(first), await begin(second)]
  await lock.release()
  const outcomes = await Promise.all([one.outcome, two.outcome])

  const afterOne = expected(first, start, start)
  const afterTwo = expected(second, afterOne.state, start)
  assert.deepEqual(outcomes, [afterOne.outcome, afterTwo.outcome], 'responses')
  // A verb that passes its access check must wait where it re-checks its proof.
  const passes = ({ verb, me }: Turn) =>
    verb.refusedLate === true || verb.refused(start, me, start) === undefined
  assert.deepEqual([one.waited, two.waited], [passes(first), passes(second)], 'waited for the row lock')
  return afterTwo.state
}

/** Runs the work for each item in parallel, and throws one error with all failures. */
async function each<T>(list: readonly T[], nameOf: (one: T) => string, work: (one: T) => Promise<void>) {
  const wrong: string[] = []
  const tried = list.map((one) =>
    work(one).catch((error: Error) => void wrong.push(`${nameOf(one)}: ${error.message}`)),
  )
  await Promise.all(tried)
  assert.equal(wrong.join('\n\n'), '')
}

for (const row of names) {
  test(`${row} concurrently with revoking operations`, async () => {
    const cells = cellsOf(row)
    const people = await createUsers(
      kernel,
      cells.map(({ setup }) => setup),
      stored,
    )
    const played: PlayedCell[] = []
    const pairs = cells.flatMap((cell, index) => {
      const person = people[index]
      return person === undefined ? [] : [{ cell, person }]
    })
    await each(
      pairs,
      ({ cell }) => cell.name,
      async ({ cell, person }) => void played.push({ cell, person, state: await play(cell, person) }),
    )
    const seen = await readStates(kernel, people)
    await each(
      played,
      ({ cell }) => cell.name,
      async ({ cell, person, state }) => {
        assert.deepEqual(seen.get(person), state.user === 'gone' ? 'gone' : state)
        await expectOpens(t, person, state, cell.setup.state)
      },
    )
  })
}

test('all operations at once on one user cause no deadlock and no constraint violation', async () => {
  const setup = setupOf(...names.map(verbOf).filter(({ start }) => start?.password === undefined))
  const people = await createUsers(kernel, Array(8).fill(setup), stored)
  for (const [round, person] of people.entries()) {
    // Each round starts with a different verb.
    const order = names.map((_, index) => names[(index * 5 + round * 7) % names.length] ?? 'ban')
    const answers = order.flatMap((name) =>
      (['S', 'O'] as const).map(async (me) => {
        const [status, code] = await carryOut(t, verbOf(name).action(person, me), person)
        return status < 500 ? [] : [`${name}: ${code}`]
      }),
    )
    assert.deepEqual((await Promise.all(answers)).flat(), [])
  }
})

test('of two admins who delete themselves concurrently, one remains', async () => {
  const admins = () => kernel.db.selectFrom('user').select('id').where('role', '=', 'admin').execute()
  const state = { ...START, role: 'admin' }
  const [ada, bob] = await createUsers(
    kernel,
    [
      { state, age: 0 },
      { state, age: 0 },
    ],
    stored,
  )
  assert.ok(ada && bob)
  const two = [ada.id, bob.id]
  const others = kernel.db.updateTable('user').set({ role: 'user' }).where('id', 'not in', two)
  await others.where('role', 'like', '%admin%').execute()
  const held = await Promise.all([locks.lock(ada.id), locks.lock(bob.id)])
  const deletes = [ada, bob].map((person) =>
    carryOut(t, verbOf('delete-user by password').action(person, 'S'), person),
  )
  await Promise.all(held.map((each) => each.waiting(1)))
  await Promise.all(held.map((each) => each.release()))
  const codes = (await Promise.all(deletes)).map(([status, code]) => code ?? status).toSorted()
  assert.deepEqual(codes, [200, 'LAST_ADMIN'])
  assert.equal((await admins()).length, 1)
})

test('every route of the auth surface has a row or is exempt with a reason', async () => {
  const [person] = await createUsers(kernel, [setupOf()], stored)
  assert.ok(person)
  const actions = names.map((name) => verbOf(name).action(person, 'S'))
  const routes = t.service.book
    .entries()
    .filter(({ surface }) => surface === 'auth')
    .map(({ method, path }) => `${method} ${path}`)
  const rows = actions.flatMap((action) =>
    'call' in action ? [] : [`${action.method} ${action.path.split('?')[0]}`],
  )
  const covered = new Set([...rows, ...Object.keys(EXEMPT)])
  assert.deepEqual([...new Set(routes)].toSorted(), [...covered].toSorted())
})

test('every revoking verb is a column, or names an equivalent one', () => {
  for (const name of names) {
    const verb = verbOf(name)
    const { state: before } = setupOf(verb)
    const after = verb.leaves(before, verb.column ?? 'O', before)
    const own = verb.start?.tickets ?? []
    const takes =
      after.user !== before.user ||
      after.role !== before.role ||
      after.password !== before.password ||
      after.mustChange !== before.mustChange ||
      !after.sessions.includes('S') ||
      (before.linked && !after.linked) ||
      (before.passkeys.includes('first') && after.passkeys.length === 0) ||
      (before.factor !== 'none' && after.factor !== before.factor) ||
      before.tickets.some((ticket) => !own.includes(ticket) && !after.tickets.includes(ticket))
    const like = verb.revokesAs as VerbName | undefined
    const isTested = verb.column !== undefined || (like !== undefined && columns.includes(like))
    assert.equal(takes, isTested, name)
  }
})
