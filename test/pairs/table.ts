import assert from 'node:assert/strict'
import { PASSWORD, type TestService } from '#test/harness.ts'
import { type Deed, VERBS, type Verb, type VerbName } from './verbs.ts'
import { type Beginning, type Person, START, type Who, type World } from './world.ts'

export const names = Object.keys(VERBS) as VerbName[]
export const verbOf = (name: VerbName): Verb => VERBS[name]
export const columns = names.filter((name) => verbOf(name).column !== undefined)

/** A verb from one of the user's sessions. */
export type Turn = { readonly verb: Verb; readonly me: Who }
export const actingTurn = (row: VerbName): Turn => ({ verb: verbOf(row), me: 'S' })
export const revokingTurn = (column: VerbName): Turn => {
  const verb = verbOf(column)
  return { verb, me: verb.column ?? 'O' }
}

/** Status and code of what was answered. */
export type Outcome = readonly [number, string | undefined]

/** What the table says of a turn: the answer, and how the user is then. */
export function foretold(
  { verb, me }: Turn,
  now: World,
  before: World,
): { readonly outcome: Outcome; readonly world: World } {
  const refusal = verb.refused(now, me, before)
  return refusal === undefined
    ? { outcome: [200, undefined], world: now.user === 'gone' ? now : verb.leaves(now, me) }
    : { outcome: refusal, world: now }
}

const DAY = 86_400_000

/** The user whom both meet. */
export function beginningOf(...verbs: readonly Verb[]): Beginning {
  const tickets = verbs.flatMap(({ start }) => start?.tickets ?? [])
  const all = [...new Set([...START.tickets, ...tickets])].toSorted()
  const world = Object.assign({}, START, ...verbs.map(({ start }) => start), { tickets: all })
  return { world, age: verbs.some(({ stale }) => stale === true) ? 2 * DAY : 0 }
}

export const headersOf = ({ sessions }: Person, who: Who | undefined): Record<string, string> =>
  who === undefined ? {} : { authorization: `Bearer ${sessions[who].token}` }

export async function carryOut(t: TestService, deed: Deed, person: Person): Promise<Outcome> {
  if ('call' in deed) return (await deed.call(t)) === false ? [404, 'NOT_THERE'] : [200, undefined]
  const { method, path, body, session } = deed
  const answer = await t.anon.send(method, path, { body, headers: headersOf(person, session) })
  return [answer.status, answer.status === 200 ? undefined : answer.body?.code]
}

/** Which sessions live, and whether the first password opens, as anybody can see. */
export async function expectOpens(
  t: TestService,
  person: Person,
  world: World,
  before: World,
): Promise<void> {
  for (const who of ['S', 'O'] as const) {
    const { status } = await t.anon.get('/api/auth/get-session', { headers: headersOf(person, who) })
    const lives = world.user === 'there' && world.sessions.includes(who)
    assert.equal(status, lives ? 200 : 401, `session ${who}`)
  }
  const body = { username: person.username, password: PASSWORD }
  const { status } = await t.anon.post('/api/auth/sign-in/username', body)
  const [expected] = VERBS['sign-in by username'].refused(world, 'S', before) ?? [200]
  assert.equal(status, expected, 'the first password')
}
