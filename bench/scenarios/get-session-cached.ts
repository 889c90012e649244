import { answers, CONNECTIONS, cachedSession } from '../loads.ts'
import type { Scenario } from '../scenario.ts'
import { httpSide, OURS, ourSide } from '../sides.ts'

const EMPTY = 'an empty route of the same server'

export const getSessionCached: Scenario = {
  title: 'get-session, cached',
  unit: 'requests per second',
  target: { of: 'Gatehouse', against: EMPTY, atLeast: 1.2 },
  hasLatency: true,
  async open(bench) {
    const { url, pid } = bench.service
    const empty = answers({ url, requests: [{ path: '/api/auth/ok' }], connections: CONNECTIONS })
    return [
      ourSide(bench, await cachedSession(bench.service)),
      httpSide(bench.loader, { name: EMPTY, pid, about: OURS, ...(await empty) }),
    ]
  },
  peers: 'session',
}
