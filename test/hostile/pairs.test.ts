import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setRole } from '#identity/roles.ts'
import { testService } from '#test/harness.ts'
import { rowLines } from '#test/pairs/line.ts'
import {
  actingTurn,
  beginningOf,
  carryOut,
  columns,
  expectOpens,
  foretold,
  names,
  type Outcome,
  revokingTurn,
  type Turn,
  verbOf,
} from '#test/pairs/table.ts'
import { EXEMPT, type VerbName } from '#test/pairs/verbs.ts'
import {
  type Beginning,
  lookAt,
  makePeople,
  type Person,
  START,
  storedForms,
  type World,
} from '#test/pairs/world.ts'

/** Cells at a time: a row, each with a connection that holds a user, and two requests. */
const AT_ONCE = 2 * columns.length

const t = await testService({
  config: {
    database: { max_connections: 3 * AT_ONCE },
    auth: { email: { sign_in_after_verification: true }, password: { queue: 500 } },
  },
})
const { kernel } = t.service
const stored = await storedForms(kernel)
const lines = rowLines(t.controlUrl, AT_ONCE)
after(() => lines.close())
// Nobody of the table is the last admin.
await makePeople(kernel, [{ world: { ...START, role: 'admin' }, age: 0 }], stored)

type Cell = {
  readonly name: string
  readonly turns: readonly [Turn, Turn]
  readonly beginning: Beginning
}
type Found = { readonly cell: Cell; readonly person: Person; readonly world: World }

/** A row's cells: each revoking verb, once committed just before the proof is stated again, and once right after. */
function cellsOf(row: VerbName): readonly Cell[] {
  const acting = actingTurn(row)
  return columns.flatMap((column) => {
    const revoking = revokingTurn(column)
    const beginning = beginningOf(acting.verb, revoking.verb)
    return [
      { name: `after ${column}`, turns: [revoking, acting], beginning },
      { name: `before ${column}`, turns: [acting, revoking], beginning },
    ] satisfies Cell[]
  })
}

/**
 * Both are let in by the user as they were at the start, then wait in line for their row, which the test holds, and go
 * on in the order of the turns. Returns what the table says of the user then.
 */
async function play({ turns: [first, second], beginning }: Cell, person: Person): Promise<World> {
  const { world: start } = beginning
  const held = await lines.hold(person.id)
  let inLine = 0
  const begin = async ({ verb, me }: Turn): Promise<{ outcome: Promise<Outcome>; waited: boolean }> => {
    const outcome = carryOut(t, verb.deed(person, me), person)
    const answered = outcome.then(
      () => false,
      () => false,
    )
    const waited = await Promise.race([held.waiting(inLine + 1).then(() => true), answered])
    if (waited) inLine++
    return { outcome, waited }
  }
  const [one, two] = [await begin(first), await begin(second)]
  await held.release()
  const outcomes = await Promise.all([one.outcome, two.outcome])

  const afterOne = foretold(first, start, start)
  const afterTwo = foretold(second, afterOne.world, start)
  assert.deepEqual(outcomes, [afterOne.outcome, afterTwo.outcome], 'the answers')
  // Whoever is let in waits where the proof is stated again.
  const isLetIn = ({ verb, me }: Turn) => verb.refused(start, me, start) === undefined
  assert.deepEqual([one.waited, two.waited], [isLetIn(first), isLetIn(second)], 'who waited for the row')
  return afterTwo.world
}

/** Runs the work for each; the failures of all are one failure. */
async function each<T>(list: readonly T[], nameOf: (one: T) => string, work: (one: T) => Promise<void>) {
  const wrong: string[] = []
  const tried = list.map((one) =>
    work(one).catch((error: Error) => void wrong.push(`${nameOf(one)}: ${error.message}`)),
  )
  await Promise.all(tried)
  assert.equal(wrong.join('\n\n'), '')
}

for (const row of names) {
  test(`${row}, beside every verb that revokes`, async () => {
    const cells = cellsOf(row)
    const people = await makePeople(
      kernel,
      cells.map(({ beginning }) => beginning),
      stored,
    )
    const played: Found[] = []
    const pairs = cells.flatMap((cell, index) => {
      const person = people[index]
      return person === undefined ? [] : [{ cell, person }]
    })
    await each(
      pairs,
      ({ cell }) => cell.name,
      async ({ cell, person }) => void played.push({ cell, person, world: await play(cell, person) }),
    )
    const seen = await lookAt(kernel, people)
    await each(
      played,
      ({ cell }) => cell.name,
      async ({ cell, person, world }) => {
        assert.deepEqual(seen.get(person), world.user === 'gone' ? 'gone' : world)
        await expectOpens(t, person, world, cell.beginning.world)
      },
    )
  })
}

test('everything at once on one user: some come too late, none meets a deadlock or a broken key', async () => {
  const beginning = beginningOf(...names.map(verbOf).filter(({ start }) => start?.password === undefined))
  const people = await makePeople(kernel, Array(8).fill(beginning), stored)
  for (const [round, person] of people.entries()) {
    // Each round begins with another verb.
    const order = names.map((_, index) => names[(index * 5 + round * 7) % names.length] ?? 'ban')
    const answers = order.flatMap((name) =>
      (['S', 'O'] as const).map(async (me) => {
        const [status, code] = await carryOut(t, verbOf(name).deed(person, me), person)
        return status < 500 ? [] : [`${name}: ${code}`]
      }),
    )
    assert.deepEqual((await Promise.all(answers)).flat(), [])
  }
})

test('two admins who delete themselves at once leave one', async () => {
  const admins = () => kernel.db.selectFrom('user').select('id').where('role', '=', 'admin').execute()
  for (const { id } of await admins()) await setRole(kernel, id, 'user')
  const world = { ...START, role: 'admin' }
  const [ada, bob] = await makePeople(
    kernel,
    [
      { world, age: 0 },
      { world, age: 0 },
    ],
    stored,
  )
  assert.ok(ada && bob)
  const held = await Promise.all([lines.hold(ada.id), lines.hold(bob.id)])
  const deletes = [ada, bob].map((person) =>
    carryOut(t, verbOf('delete-user by password').deed(person, 'S'), person),
  )
  await Promise.all(held.map((each) => each.waiting(1)))
  await Promise.all(held.map((each) => each.release()))
  const codes = (await Promise.all(deletes)).map(([status, code]) => code ?? status).toSorted()
  assert.deepEqual(codes, [200, 'LAST_ADMIN'])
  assert.equal((await admins()).length, 1)
})

test('every route of the surface is a row, or says why not', async () => {
  const [person] = await makePeople(kernel, [beginningOf()], stored)
  assert.ok(person)
  const deeds = names.map((name) => verbOf(name).deed(person, 'S'))
  const routes = t.service.book
    .entries()
    .filter(({ surface }) => surface === 'auth')
    .map(({ method, path }) => `${method} ${path}`)
  const rows = deeds.flatMap((deed) => ('call' in deed ? [] : [`${deed.method} ${deed.path.split('?')[0]}`]))
  const covered = new Set([...rows, ...Object.keys(EXEMPT)])
  assert.deepEqual([...new Set(routes)].toSorted(), [...covered].toSorted())
})

test('every verb that takes away what another relies on is a column, or says which is like it', () => {
  for (const name of names) {
    const verb = verbOf(name)
    const { world: before } = beginningOf(verb)
    const after = verb.leaves(before, verb.column ?? 'O')
    const own = verb.start?.tickets ?? []
    const takes =
      after.user !== before.user ||
      after.role !== before.role ||
      after.password !== before.password ||
      after.mustChange !== before.mustChange ||
      !after.sessions.includes('S') ||
      before.tickets.some((ticket) => !own.includes(ticket) && !after.tickets.includes(ticket))
    const like = verb.revokesAs as VerbName | undefined
    const isTested = verb.column !== undefined || (like !== undefined && columns.includes(like))
    assert.equal(takes, isTested, name)
  }
})
