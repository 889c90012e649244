import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEMANDS } from '#auth/door/demands.ts'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { testService } from '#test/harness.ts'
import { createUsers, type Setup, START, storedHashes, type TestUser } from '#test/proof-races/user-state.ts'
import { sampled } from '#test/sample.ts'
import { startTokenServer } from '#test/token-server.ts'
import { DEMANDING, type Demanding, WITH_EVERYTHING } from './demanding.ts'
import { LOWERING, type Lowering, MORE } from './lowering.ts'
import { createThief, type Thief } from './thief.ts'

/** Cells that run in parallel. */
const AT_ONCE = 12

const provider = await startTokenServer()
const t = await testService({
  config: {
    database: { max_connections: 3 * AT_ONCE },
    auth: {
      password: { queue: 500 },
      two_factor: { required_for: ['admin'] },
      ...EVERY_FEATURE,
      admin: { roles: { keeper: { user: ['update', 'set-email', 'set-password'] } } },
      social: { providers: { acme: provider.settings, github: provider.settings } },
      device: { clients: { tv: {} } },
    },
    outbound: { allow_http: true, allow_networks: ['127.0.0.0/8'] },
  },
})
const { kernel } = t.service
const { db, now } = kernel
const stored = await storedHashes(kernel)

/** When the demand is asked for: after the lowering, at the same moment, or before it and once more after it. */
const ORDERS = ['before', 'beside', 'after'] as const

type Cell = { readonly name: string; readonly setup: Setup; play(thief: Thief): Promise<boolean> }

const lowerings: readonly (readonly [string, Lowering])[] = [
  ...Object.entries(LOWERING).flatMap(([name, lower]) =>
    typeof lower === 'function' ? [[name, lower] as const] : [],
  ),
  ...Object.entries(MORE),
]

/** More than the orders and the lowerings have in common, so that a verb meets all orders, and the verbs together all lowerings. */
const chosen = (cells: readonly Cell[], verb: string): readonly Cell[] =>
  sampled(cells, 10, Object.keys(DEMANDING).indexOf(verb))

function cellsOf({ age, start, needsPassword, attempt, succeeded }: Demanding): readonly Cell[] {
  const isDone = succeeded ?? (({ status }) => status === 200)
  const take = async (thief: Thief) => isDone(await attempt(thief))
  const profit = async (thief: Thief) => {
    await thief.reauthenticate()
    return take(thief)
  }
  const passwords = needsPassword === true || start?.password === null ? [start?.password] : ['first', null]
  return passwords.flatMap((password) =>
    lowerings.flatMap(([lowering, lower]) =>
      ORDERS.map((order) => {
        const state = { ...START, ...WITH_EVERYTHING, ...start, ...(password !== undefined && { password }) }
        const play: Cell['play'] = async (thief) => {
          if (order === 'before') await lower(t, thief)
          const taken =
            order === 'beside' ? (await Promise.all([take(thief), lower(t, thief)]))[0] : await take(thief)
          if (order === 'after') await lower(t, thief)
          return taken || (await profit(thief))
        }
        const name = `${lowering} ${order} it${password === null ? ', without a password' : ''}`
        return { name, setup: { state, age } as Setup, play }
      }),
    ),
  )
}

/** The owner's session has just shown everything. The stolen one is as old as the cell says. */
const refresh = ({ sessions: { O } }: TestUser) => {
  const at = now()
  const shown = { authTime: at, passwordShownAt: at, factorShownAt: at }
  return db.updateTable('session').set(shown).where('id', '=', O.id).execute()
}

for (const [verb, demanding] of Object.entries(DEMANDING))
  test(`nothing makes smaller what ${verb} demands: ${DEMANDS[verb as keyof typeof DEMANDS].join(', ')}`, async () => {
    const cells = chosen(cellsOf(demanding), verb)
    const people = await createUsers(
      kernel,
      cells.map(({ setup }) => setup),
      stored,
    )
    const taken: string[] = []
    const queue = cells.map((cell, index) => ({ cell, person: people[index] }))
    const work = async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const { cell, person } = next
        assert.ok(person)
        await refresh(person)
        await demanding.prepare?.(kernel, person)
        if (await cell.play(createThief(t, person))) taken.push(cell.name)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    assert.deepEqual(taken, [])
  })

for (const [verb, demanding] of Object.entries(DEMANDING))
  test(`${verb} works in a session that has just shown everything`, async () => {
    const state = { ...START, ...WITH_EVERYTHING, ...demanding.start }
    const [person] = await createUsers(kernel, [{ state, age: 0 }], stored)
    assert.ok(person)
    await demanding.prepare?.(kernel, person)
    const answer = await demanding.attempt(createThief(t, person))
    assert.ok((demanding.succeeded ?? (({ status }) => status === 200))(answer), answer.text)
  })
