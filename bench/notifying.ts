/**
 * The ceiling of commits that tell other processes of a change: NOTIFY takes a lock of the whole server until its commit is done. In the
 * database alone, and over HTTP on one process or more. `node bench/notifying.ts [--workers N] [--connections 8,64,256] [--rounds 5]`, on
 * TEST_DATABASE_URL if it is set. It needs pgbench.
 */
import { parseArgs } from 'node:util'
import { withClient } from '#test/database.ts'
import { type Fixture, withFixture } from './fixture.ts'
import type { Load } from './load/load.ts'
import { type Loader, startLoader } from './load/loader.ts'
import { sessionsOf } from './loads-of-sessions.ts'
import { interleaved, type Way } from './rounds.ts'
import { runPgbench, withFile } from './sides.ts'
import { median } from './statistics.ts'
import { printTable } from './table.ts'

const SECONDS = 2
/** Many, so that few statements wait for the row of another. */
const ROWS = 20_000
/** Sessions that are used once in a turn; more than can be. */
const SESSIONS = 12_000

const { values } = parseArgs({
  options: {
    workers: { type: 'string', default: '1' },
    connections: { type: 'string', default: '8,64,256' },
    rounds: { type: 'string', default: '5' },
  },
})
const rounds = Number(values.rounds)
const wayName = (name: string, connections: number): string => `${name}, ${connections}`
const sizes = values.connections.split(',').map(Number)

const TABLE = `
create table bench_commits (number int primary key, count int not null default 0, user_id uuid not null, session_id uuid not null);
insert into bench_commits select i, 0, gen_random_uuid(), gen_random_uuid() from generate_series(1, ${ROWS}) i;
insert into service."user" (id, name, email, created_at, updated_at)
  select user_id, 'commit', number || '@commits.example.com', now(), now() from bench_commits;
insert into service.session (id, token_hash, user_id, expires_at, created_at, updated_at, remembered)
  select session_id, sha256(session_id::text::bytea), user_id, now() + interval '1 day', now(), now(), true from bench_commits;
analyze bench_commits, service."user", service.session`

const ROW = (column: string) => `(select ${column} from bench_commits where number = :row)`

const CHANGE_OF_USER = `update service."user" set name = 'name ' || :value where id = ${ROW('user_id')}`

/** One commit each. */
const STATEMENTS: Readonly<Record<string, string>> = {
  'a commit without NOTIFY': 'update bench_commits set count = count + 1 where number = :row',
  'a session is extended': `update service.session set expires_at = expires_at + interval '1 second', updated_at = now() where id = ${ROW('session_id')}`,
  'a session changes': `update service.session set ip_address = '192.0.2.' || :value where id = ${ROW('session_id')}`,
  'a user changes, as caches see': CHANGE_OF_USER,
  // Not what the service does: decision 72.
  'the same, on disk after the lock': `begin;\n${CHANGE_OF_USER};\nselect set_config('synchronous_commit', 'off', true);\ncommit;\nselect pg_logical_emit_message(true, 'bench', '')`,
  'a user changes, as no cache sees': `update service."user" set devices_ended_at = now() where id = ${ROW('user_id')}`,
}

await withFixture(
  async (fixture) => {
    await using cleanups = new AsyncDisposableStack()
    const loader = startLoader()
    cleanups.defer(loader.end)
    const after = (clean: () => Promise<void>) => cleanups.defer(clean)
    console.log(`commits a second · ${fixture.describes} · ${values.workers} processes · ${rounds} rounds`)
    const ways = { ...(await databaseWays(fixture.controlUrl, after)), ...(await httpWays(fixture, loader)) }
    const rates = await interleaved(ways, rounds)
    const names = new Set(Object.keys(ways).map((way) => way.slice(0, way.lastIndexOf(', '))))
    const rateOf = (name: string, size: number) =>
      median((rates.get(wayName(name, size)) ?? []).filter(Number.isFinite))
    printTable([
      ['', ...sizes.map((size) => `${size} connections`)],
      ...[...names].map((name) => [
        name,
        ...sizes.map((size) => Math.round(rateOf(name, size)).toLocaleString('en')),
      ]),
    ])
  },
  { SERVICE_SERVER__WORKERS: values.workers },
)

type Ways = Readonly<Record<string, Way>>

async function databaseWays(url: string, after: (clean: () => Promise<void>) => void): Promise<Ways> {
  await withClient(url, (db) => db.query(TABLE))
  const ways: Record<string, Way> = {}
  for (const [name, statement] of Object.entries(STATEMENTS)) {
    const script = `\\set row random(1, ${ROWS})\n\\set value random(1, 1000000)\n${statement};\n`
    const file = await withFile(after, 'script.sql', script)
    for (const connections of sizes)
      ways[wayName(name, connections)] = async () =>
        (await runPgbench(url, { file, connections, seconds: SECONDS })).rate
  }
  return ways
}

async function httpWays(fixture: Fixture, loader: Loader): Promise<Ways> {
  const sessions = await sessionsOf(fixture)
  const once = { count: SESSIONS, once: true }
  const signOut = { method: 'POST', path: '/api/auth/sign-out' }
  const getSession = { path: '/api/auth/get-session' }
  const kinds: Readonly<Record<string, (connections: number) => Promise<Load>>> = {
    'HTTP: get-session extends': (connections) =>
      sessions.load(getSession, { ...once, areOld: true, connections }),
    'HTTP: sign-out': (connections) => sessions.load(signOut, { ...once, connections }),
    'HTTP: update-user': sessions.loadOfUpdates,
  }
  const ways: Record<string, Way> = {}
  for (const [name, loadOf] of Object.entries(kinds))
    for (const connections of sizes)
      ways[wayName(name, connections)] = async () => {
        const { done, failed, failures, seconds } = await loader.perform({
          load: await loadOf(connections),
          seconds: SECONDS,
        })
        if (failed > 0) throw new Error(`${name}: ${JSON.stringify(failures)}`)
        return done / seconds
      }
  return ways
}
