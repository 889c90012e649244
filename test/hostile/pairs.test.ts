import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { PASSWORD, testService } from '#test/harness.ts'
import { rowLines } from '#test/pairs/line.ts'
import { type Deed, EXEMPT, type Refusal, VERBS, type Verb, type VerbName } from '#test/pairs/verbs.ts'
import {
  lookAt,
  makePeople,
  type Person,
  START,
  storedForms,
  type Who,
  type World,
} from '#test/pairs/world.ts'

/** Cells at a time. */
const AT_ONCE = 22

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

const DAY = 86_400_000
const names = Object.keys(VERBS) as VerbName[]
const verbOf = (name: VerbName): Verb => VERBS[name]
const columns = names.filter((name) => verbOf(name).column !== undefined)

/** Status and code of what was answered. */
type Outcome = readonly [number, string | undefined]
type Turn = { readonly verb: Verb; readonly me: Who }

const headersOf = (person: Person, who: Who | undefined): Record<string, string> =>
  who === undefined ? {} : { authorization: `Bearer ${person.sessions[who].token}` }

async function carryOut(deed: Deed, person: Person): Promise<Outcome> {
  if ('call' in deed) return (await deed.call(t)) === false ? [404, 'NOT_THERE'] : [200, undefined]
  const { method, path, body, session } = deed
  const { status, body: says } = await t.anon.send(method, path, {
    body,
    headers: headersOf(person, session),
  })
  return [status, status === 200 ? undefined : says?.code]
}

/** What the table says of a turn: the answer, and how the user is then. */
function foretold({ verb, me }: Turn, now: World, before: World): { outcome: Outcome; world: World } {
  const refusal: Refusal | undefined = verb.refused(now, me, before)
  return refusal === undefined
    ? { outcome: [200, undefined], world: now.user === 'gone' ? now : verb.leaves(now, me) }
    : { outcome: refusal, world: now }
}

function startOf(...verbs: readonly Verb[]): World {
  const tickets = verbs.flatMap(({ start }) => start?.tickets ?? [])
  const all = [...new Set([...START.tickets, ...tickets])].toSorted()
  return Object.assign({}, START, ...verbs.map(({ start }) => start), { tickets: all })
}

type Cell = { readonly name: string; readonly turns: readonly [Turn, Turn]; readonly start: World }
type Found = { readonly cell: Cell; readonly person: Person; readonly world: World }

/** A row's cells: each revoking verb, once committed just before the proof is stated again, and once right after. */
function cellsOf(row: VerbName): readonly Cell[] {
  const acting: Turn = { verb: verbOf(row), me: 'S' }
  return columns.flatMap((column) => {
    const revoking: Turn = { verb: verbOf(column), me: verbOf(column).column ?? 'O' }
    const start = startOf(acting.verb, revoking.verb)
    return [
      { name: `after ${column}`, turns: [revoking, acting], start },
      { name: `before ${column}`, turns: [acting, revoking], start },
    ] satisfies Cell[]
  })
}

const ageOf = ({ turns }: Cell): number => (turns.some(({ verb }) => verb.stale === true) ? 2 * DAY : 0)

/**
 * Both are let in by the user as they were at the start, then wait in line for their row, which the test holds, and go
 * on in the order of the turns. Returns what the table says of the user then.
 */
async function play({ turns: [first, second], start }: Cell, person: Person): Promise<World> {
  const held = await lines.hold(person.id)
  let inLine = 0
  const begin = async ({ verb, me }: Turn): Promise<{ outcome: Promise<Outcome>; waited: boolean }> => {
    const outcome = carryOut(verb.deed(person, me), person)
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

async function expectOpens(person: Person, world: World, start: World): Promise<void> {
  for (const who of ['S', 'O'] as const) {
    const { status } = await t.anon.get('/api/auth/get-session', { headers: headersOf(person, who) })
    const lives = world.user === 'there' && world.sessions.includes(who)
    assert.equal(status, lives ? 200 : 401, `session ${who}`)
  }
  const body = { username: person.username, password: PASSWORD }
  const { status } = await t.anon.post('/api/auth/sign-in/username', body)
  const [expected] = VERBS['sign-in by username'].refused(world, 'S', start) ?? [200]
  assert.equal(status, expected, 'the first password')
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
      cells.map((cell) => ({ world: cell.start, age: ageOf(cell) })),
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
        await expectOpens(person, world, cell.start)
      },
    )
  })
}

test('every route of the surface is a row, or says why not', () => {
  const routes = t.service.book
    .entries()
    .filter(({ surface }) => surface === 'auth')
    .map(({ method, path }) => `${method} ${path}`)
  const rows = names.flatMap((name) => verbOf(name).routes)
  const covered = new Set([...rows, ...Object.keys(EXEMPT)])
  assert.deepEqual([...new Set(routes)].toSorted(), [...covered].toSorted())
})

test('every verb that takes away what another relies on is a column, or says which is like it', () => {
  for (const name of names) {
    const verb = verbOf(name)
    const before = startOf(verb)
    const after = verb.leaves(before, verb.column ?? 'O')
    const own = verb.start?.tickets ?? []
    const takes =
      after.user !== before.user ||
      after.role !== before.role ||
      after.password !== before.password ||
      !after.sessions.includes('S') ||
      before.tickets.some((ticket) => !own.includes(ticket) && !after.tickets.includes(ticket))
    const like = verb.revokesAs as VerbName | undefined
    const isTested = verb.column !== undefined || (like !== undefined && columns.includes(like))
    assert.equal(takes, isTested, name)
  }
})
