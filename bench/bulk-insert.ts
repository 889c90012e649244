/**
 * Compares bulk inserts over HTTP with 10,000 rows per body to `COPY … FROM STDIN` of the same rows by psql on one connection. Neither
 * returns rows. `node bench/bulk-insert.ts`, on TEST_DATABASE_URL if it is set.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { type Fixture, withFixture } from './fixture.ts'
import { isThere } from './load.ts'
import { interleaved, printRates, printTarget } from './rounds.ts'

const ROWS = 10_000
/** Bodies per round. */
const BODIES = 6
const ROUNDS = 6
const COPY = 'COPY from one connection'
const ONE = 'HTTP, one body at a time'

const TABLE = `
create table if not exists bench_inserted (id bigint generated always as identity primary key, name text not null, email text,
  active boolean, price numeric(12,2), created_at timestamptz, note text, meta jsonb)`

const rows = Array.from({ length: ROWS }, (_, index) => ({
  name: `name ${index}`,
  email: `user${index}@example.com`,
  active: index % 2 === 0,
  price: index * 1.25,
  created_at: new Date(1_700_000_000_000 + index * 60_000).toISOString(),
  note: index % 3 > 0 ? `${'lorem ipsum dolor '.repeat(4)}${index}` : null,
  meta: { k: index },
}))
const columns = Object.keys(rows[0] ?? {}).join(', ')

await withFixture(async (fixture) => {
  await fixture.sql(TABLE)
  const hasPsql = isThere('psql', '--version')
  const onEmpty = (way: () => Promise<void>) => async () => {
    await fixture.sql('truncate bench_inserted')
    const began = performance.now()
    await way()
    return (ROWS * BODIES * 1_000) / (performance.now() - began)
  }
  const rates = await withCopyScript(fixture, (copy) =>
    interleaved(
      {
        ...(hasPsql && { [COPY]: onEmpty(copy) }),
        [ONE]: onEmpty(() => send(fixture, 1)),
        'HTTP, three bodies at once': onEmpty(() => send(fixture, 3)),
      },
      ROUNDS,
    ),
  )
  console.log(`${ROWS} rows per body · ${fixture.describes} · ${ROUNDS} × ${BODIES} bodies`)
  if (!hasPsql) console.log("  psql is missing; install Debian's package postgresql-client")
  printRates(rates, { unit: 'rows per second', against: [COPY] })
  printTarget(rates, ONE, COPY, 0.25)
})

async function send({ url, headers }: Fixture, atOnce: number): Promise<void> {
  const body = JSON.stringify({ table_name: 'bench_inserted', insert_body: rows, head: true })
  let left = BODIES
  const sender = async () => {
    while (left-- > 0) {
      const answer = await fetch(`${url}/gateway/insert`, { method: 'PUT', headers, body })
      const text = await answer.text()
      if (!text.includes(`"affected_rows":${ROWS}`)) throw new Error(text)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, sender))
}

/** Passes `work` a function that copies the same rows with psql. The time includes psql's start, about 20 ms. */
async function withCopyScript<T>(
  { databaseUrl }: Fixture,
  work: (copy: () => Promise<void>) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-copy-'))
  try {
    const [data, script] = [path.join(folder, 'rows'), path.join(folder, 'copy.sql')]
    await writeFile(data, rows.map((row) => `${Object.values(row).map(copyText).join('\t')}\n`).join(''))
    await writeFile(script, `\\copy bench_inserted (${columns}) from '${data}'\n`.repeat(BODIES))
    const options = ['--no-psqlrc', '--quiet', '-v', 'ON_ERROR_STOP=1', '-f', script, databaseUrl]
    return await work(async () => void (await promisify(execFile)('psql', options)))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** A value in COPY's text format. No value here needs escaping. */
function copyText(value: unknown): string {
  if (value === null) return '\\N'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
