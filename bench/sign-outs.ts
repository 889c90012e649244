/**
 * Compares sign-outs of 8 and 64 clients to commits without NOTIFY on the same server (`pgbench`, each updates one row). Each sign-out ends
 * a different session. `node bench/sign-outs.ts`, on TEST_DATABASE_URL if it is set.
 */
import { withClient } from '#test/database.ts'
import { type Fixture, ROWS, withFixture } from './fixture.ts'
import { loader, requestsPerSecond } from './load.ts'
import { hasPgbench, transactionsPerSecond } from './pgbench.ts'
import { interleaved, printRates, printTarget } from './rounds.ts'

const CLIENTS = [8, 64]
const ROUNDS = Number(process.argv[2] ?? 7)
const SECONDS = 2
/** Sessions per round, more than can end in that time. */
const SESSIONS = 20_000

const COMMIT = `\\set id random(1, ${ROWS})\nupdate bench_rows set active = not active where id = :id;\n`
const PREFIX = 'bench-token'.padEnd(43 - 9, '-')

let used = 0

const signOuts = (clients: number) => `sign-outs, ${clients} clients`
const commits = (clients: number) => `commits, ${clients} clients`

await withFixture(async (fixture) => {
  await addUsers(fixture)
  const ways = CLIENTS.flatMap((connections) => [
    ...(hasPgbench ? [[commits(connections), () => commitsPerSecond(fixture, connections)] as const] : []),
    [signOuts(connections), () => signOutsPerSecond(fixture, connections)] as const,
  ])
  const rates = await interleaved(Object.fromEntries(ways), ROUNDS)
  console.log(`sign-outs · ${fixture.describes} · ${ROUNDS} × ${SECONDS} s by ${loader}`)
  if (!hasPgbench) console.log("  pgbench is missing; install Debian's package postgresql")
  printRates(rates, { unit: 'per second', against: CLIENTS.map(commits) })
  for (const clients of CLIENTS) printTarget(rates, signOuts(clients), commits(clients), 0.5)
})

function commitsPerSecond({ databaseUrl }: Fixture, connections: number): Promise<number> {
  return transactionsPerSecond(databaseUrl, COMMIT, { connections, seconds: SECONDS })
}

async function signOutsPerSecond(fixture: Fixture, connections: number): Promise<number> {
  const from = nextSessions()
  await addSessions(fixture, from)
  return requestsPerSecond(
    {
      url: fixture.url,
      method: 'POST',
      targets: [{ path: '/api/auth/sign-out' }],
      numbered: { name: 'authorization', prefix: `Bearer ${PREFIX}`, from },
      connections,
    },
    SECONDS,
  )
}

/** Returns the number of the first token. Tokens are new in each round, because caches are not notified of a truncation. */
function nextSessions(): number {
  const from = used + 1
  used += SESSIONS
  return from
}

async function addUsers({ controlUrl }: Fixture): Promise<void> {
  await withClient(controlUrl, (db) =>
    db.query(
      `insert into service."user" (id, name, email, created_at, updated_at)
       select gen_random_uuid(), 'bench', 'bench' || i || '@example.com', now(), now() from generate_series(1, $1::int) i`,
      [SESSIONS],
    ),
  )
}

/** Creates one session for each user, and removes the sessions of earlier rounds. */
async function addSessions({ controlUrl }: Fixture, from: number): Promise<void> {
  await withClient(controlUrl, async (db) => {
    await db.query('truncate service.session cascade')
    await db.query(
      `insert into service.session (id, token_hash, user_id, expires_at, created_at, updated_at, remembered)
       select gen_random_uuid(), sha256(convert_to($1 || lpad(($2 - 1 + row_number() over ())::text, 9, '0'), 'utf8')), id,
         now() + interval '1 day', now(), now(), true from service."user" where name = 'bench'`,
      [PREFIX, from],
    )
    await db.query('vacuum analyze service.session')
  })
}
