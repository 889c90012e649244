import assert from 'node:assert/strict'
import { Failure } from '#kernel/errors.ts'
import { PASSWORD, type TestService } from '#test/harness.ts'
import { sampled } from '#test/sample.ts'
import { type Setup, START, type TestUser, type UserState, type Who } from './user-state.ts'
import { type Action, VERBS, type Verb, type VerbName } from './verbs.ts'

export const names = Object.keys(VERBS) as VerbName[]
export const verbOf = (name: VerbName): Verb => VERBS[name]
export const columns = names.filter((name) => verbOf(name).column !== undefined)

/** The columns that a row meets in a run. */
export const columnsOf = (row: VerbName): readonly VerbName[] => sampled(columns, 6, names.indexOf(row))

/** A verb that is called from one of the user's sessions. */
export type Turn = { readonly verb: Verb; readonly me: Who }
export const actingTurn = (row: VerbName): Turn => ({ verb: verbOf(row), me: 'S' })
export const revokingTurn = (column: VerbName): Turn => {
  const verb = verbOf(column)
  return { verb, me: verb.column ?? 'O' }
}

/** Status and code of a response. */
export type Outcome = readonly [number, string | undefined]

/** The expected response to a turn, and the user's expected state after it. `begun`: the state when the sessions began. */
export function expected(
  { verb, me }: Turn,
  now: UserState,
  before: UserState,
  begun = before,
): { readonly outcome: Outcome; readonly state: UserState } {
  const refusal = verb.refused(now, me, before)
  return refusal === undefined
    ? { outcome: [200, undefined], state: now.user === 'gone' ? now : verb.leaves(now, me, begun) }
    : { outcome: refusal, state: now }
}

const DAY = 86_400_000

/** The initial state of a user for a pair of verbs. */
export function setupOf(...verbs: readonly Verb[]): Setup {
  const tickets = verbs.flatMap(({ start }) => start?.tickets ?? [])
  const all = [...new Set([...START.tickets, ...tickets])].toSorted()
  const state = Object.assign({}, START, ...verbs.map(({ start }) => start), { tickets: all })
  return { state, age: verbs.some(({ stale }) => stale === true) ? 2 * DAY : 0 }
}

export const headersOf = (
  { sessions, admin }: TestUser,
  who: Who | 'admin' | undefined,
): Record<string, string> =>
  who === undefined ? {} : { authorization: `Bearer ${{ ...sessions, admin }[who].token}` }

export async function carryOut(t: TestService, action: Action, person: TestUser): Promise<Outcome> {
  if ('call' in action) return outcomeOf(action.call(t))
  const { method, path, body, session } = action
  const answer = await t.anon.send(method, path, { body, headers: headersOf(person, session) })
  return [answer.status, answer.status === 200 ? undefined : answer.body?.code]
}

async function outcomeOf(call: Promise<unknown>): Promise<Outcome> {
  try {
    return (await call) === false ? [404, 'NOT_THERE'] : [200, undefined]
  } catch (error) {
    if (error instanceof Failure) return [error.status, error.code]
    throw error
  }
}

/** Asserts over HTTP which sessions are active, and whether the first password signs in. */
export async function expectOpens(
  t: TestService,
  person: TestUser,
  state: UserState,
  before: UserState,
): Promise<void> {
  for (const who of ['S', 'O'] as const) {
    const { status } = await t.anon.get('/api/auth/get-session', { headers: headersOf(person, who) })
    const lives = state.user === 'there' && state.sessions.includes(who)
    assert.equal(status, lives ? 200 : 401, `session ${who}`)
  }
  const body = { username: person.username, password: PASSWORD }
  const { status } = await t.anon.post('/api/auth/sign-in/username', body)
  const [expectedStatus] = VERBS['sign-in by username'].refused(state, 'S', before) ?? [200]
  assert.equal(status, expectedStatus, 'sign-in with the first password')
}
