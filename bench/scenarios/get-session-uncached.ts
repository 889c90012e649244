import { CONNECTIONS } from '../loads.ts'
import { sessionsOf } from '../loads-of-sessions.ts'
import type { Scenario } from '../scenario.ts'
import { ourSide } from '../sides.ts'

/** Sent in turn: more than a process keeps, so that each one has been dropped when its turn comes again. */
const SESSIONS = 45_000

export const getSessionUncached: Scenario = {
  title: 'get-session, uncached',
  unit: 'requests per second',
  target: { of: 'Gatehouse', against: 'better-auth', atLeast: 10 },
  hasLatency: true,
  async open(bench) {
    const sessions = await sessionsOf(bench.service)
    const load = await sessions.load(
      { path: '/api/auth/get-session' },
      { count: SESSIONS, connections: CONNECTIONS },
    )
    return [ourSide(bench, { load, check: sessions.check })]
  },
  peers: 'session',
}
