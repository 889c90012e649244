import { sessionsOf } from '../loads-of-sessions.ts'
import type { Scenario } from '../scenario.ts'
import { ROWS } from '../service.ts'
import { ourSide, pgbenchSide } from '../sides.ts'

const COMMITS = 'commits without NOTIFY'
const COMMIT = `\\set id random(1, ${ROWS})\nupdate bench_rows set active = not active where id = :id;\n`
/** More than can end in a turn. */
const SESSIONS = 12_000

/** Each ends a session of its own. */
const signOuts = (clients: number): Scenario => ({
  title: `sign-outs, ${clients} clients`,
  unit: 'requests per second',
  target: { of: 'Gatehouse', against: COMMITS, atLeast: 0.5 },
  warmUp: 10,
  async open(bench) {
    const sessions = await sessionsOf(bench.service)
    const request = { method: 'POST', path: '/api/auth/sign-out' }
    const next = () => sessions.load(request, { count: SESSIONS, connections: clients, once: true })
    return [
      ourSide(bench, { load: next, check: sessions.checkSignOut }),
      await pgbenchSide(bench, COMMIT, { name: COMMITS, connections: clients }),
    ]
  },
})

export const signOuts8 = signOuts(8)
export const signOuts64 = signOuts(64)
