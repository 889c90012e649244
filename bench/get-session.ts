/**
 * Compares cached get-session requests to an empty route of the same server and to better-auth on the same PostgreSQL.
 * `node bench/get-session.ts`, on TEST_DATABASE_URL if it is set.
 */
import { type Fixture, withFixture } from './fixture.ts'
import { loader, requestsPerSecond } from './load.ts'
import { withPeer } from './peer.ts'
import { interleaved, printRates, printTarget } from './rounds.ts'

const CONNECTIONS = 16
const ROUNDS = 7
const SECONDS = 2
const EMPTY = 'an empty route'
const BETTER_AUTH = 'better-auth 1.7.7'

await withFixture((fixture) =>
  withPeer('better-auth.ts', [fixture.databaseUrl], async (betterAuth) => {
    const rates = await compare(fixture, betterAuth)
    console.log(
      `get-session, cached · ${fixture.describes} · ${CONNECTIONS} connections · ${ROUNDS} × ${SECONDS} s by ${loader}`,
    )
    printRates(rates, { unit: 'per second', against: [EMPTY, BETTER_AUTH] })
    printTarget(rates, 'get-session', EMPTY, 0.6)
    printTarget(rates, 'get-session', BETTER_AUTH, 25)
  }),
)

async function compare({ url }: Fixture, betterAuth: string) {
  const load = (server: string, route: string, headers = {}) => {
    const targets = [{ path: `/api/auth/${route}` }]
    return () => requestsPerSecond({ url: server, targets, headers, connections: CONNECTIONS }, SECONDS)
  }
  const { token } = (await (await signUp(url)).json()) as { token: string } // the response schema SignedUp
  const cookie = (await signUp(betterAuth)).headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ')
  return interleaved(
    {
      [EMPTY]: load(url, 'ok'),
      'get-session': load(url, 'get-session', { authorization: `Bearer ${token}` }),
      [BETTER_AUTH]: load(betterAuth, 'get-session', { cookie }),
    },
    ROUNDS,
  )
}

async function signUp(server: string): Promise<Response> {
  const answer = await fetch(`${server}/api/auth/sign-up/email`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: server },
    body: JSON.stringify({ name: 'Ada', email: 'ada@example.com', password: 'correct horse battery' }),
  })
  if (!answer.ok) throw new Error(`${server}: ${await answer.text()}`)
  return answer
}
