import assert from 'node:assert/strict'
import { HEADER } from '#kernel/http/header-names.ts'
import { type CheckedLoad, cachedSession } from '../loads.ts'
import type { Scenario } from '../scenario.ts'
import { type Service, startService } from '../service.ts'
import { httpSide, OURS, ourSide } from '../sides.ts'

const WITH = 'Gatehouse, with the token in the header'
const WITHOUT = 'Gatehouse, without tokens in headers'

/** The header is a setting, so the other side is another process. */
export const getSessionWithJwt: Scenario = {
  title: 'get-session, cached, with its JSON web token',
  unit: 'requests per second',
  target: { of: WITH, against: WITHOUT, atLeast: 0.9 },
  hasLatency: true,
  settings: () => ({ SERVICE_AUTH__JWT__HEADER: 'true' }),
  async open(bench) {
    const plain = await startService(bench.server)
    bench.after(plain.stop)
    return [
      ourSide(bench, { name: WITH, ...(await sessionOf(bench.service, true)) }),
      httpSide(bench.loader, {
        name: WITHOUT,
        pid: plain.pid,
        about: OURS,
        ...(await sessionOf(plain, false)),
      }),
    ]
  },
}

async function sessionOf(service: Service, hasToken: boolean): Promise<CheckedLoad> {
  const { load, check } = await cachedSession(service)
  return {
    load,
    async check() {
      await check()
      const { headers } = await fetch(`${service.url}/api/auth/get-session`, { headers: { ...load.headers } })
      assert.equal(headers.get(HEADER.authJwt)?.split('.').length, hasToken ? 3 : undefined)
    },
  }
}
