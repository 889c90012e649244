import { securedBy, startIssuer } from '../jwt-issuer.ts'
import type { Request } from '../load/load.ts'
import { byId, CONNECTIONS } from '../loads.ts'
import { residentMemory } from '../processor.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { headersWithKey, startService } from '../service.ts'
import { OURS } from '../sides.ts'
import type { Work } from '../turns.ts'
import { addRoles, ROLES } from './row-by-session.ts'

const MORE = 'Gatehouse, with a hundred thousand tokens more'
const TOKENS = 100_000
/** Requests after which a process has compiled all that it needs for them. */
const WARM = 20_000
/** Seconds for the requests of one kind. */
const PATIENCE = 600

/** Resident memory of a process after requests with as many different tokens, less that after many with one token. */
export const memoryOfJwts: Scenario = {
  title: 'memory of 100,000 JWTs of another issuer',
  unit: 'MiB',
  target: { of: MORE, atMost: 32 },
  async open(bench) {
    const issuer = await startIssuer(bench)
    const tokens = Array.from({ length: TOKENS }, (_, index) => issuer.token(`user ${index}`))
    return [
      {
        name: MORE,
        about: OURS,
        check: async () => {},
        work: () => growthBy(bench, issuer.url, tokens),
      },
    ]
  },
}

async function growthBy(bench: Bench, issuer: string, tokens: readonly string[]): Promise<Work> {
  const [cleanups, began] = [new AsyncDisposableStack(), performance.now()]
  try {
    const service = await startService(bench.server, securedBy(issuer))
    cleanups.defer(service.stop)
    await addRoles({ ...bench, service, after: (clean) => cleanups.defer(clean) })
    await service.sql(`grant select on bench_rows to ${ROLES.signedIn}`)
    const headers = await headersWithKey(service, 'secured')
    const perform = async (bearers: readonly string[]) => {
      const requests = bearers.map(rowWith)
      const load = { url: service.url, headers, requests, connections: CONNECTIONS, once: true }
      return {
        ...(await bench.loader.perform({ load, seconds: PATIENCE })),
        memory: residentMemory(service.pid),
      }
    }
    const [first = ''] = tokens
    const one = await perform(Array.from({ length: WARM }, () => first))
    const all = await perform(tokens)
    return {
      done: one.done + all.done,
      failed: one.failed + all.failed,
      seconds: (performance.now() - began) / 1_000,
      load: one.processor + all.processor,
      value: all.memory - one.memory,
    }
  } finally {
    await cleanups.disposeAsync()
  }
}

const BODY = JSON.stringify(byId(1))

const rowWith = (token: string): Request => ({
  method: 'POST',
  path: '/gateway/fetch',
  headers: { authorization: `Bearer ${token}` },
  body: BODY,
})
