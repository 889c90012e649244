import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { testDatabase, withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'

const KIB = 1_024
const MIB = 1_048_576

/** Text sizes of a row, around the chunk sizes of the socket, the row writer and the HTTP server. */
const SIZES = [
  200,
  3_600,
  16 * KIB - 40,
  16 * KIB,
  64 * KIB - 40,
  64 * KIB - 7,
  64 * KIB,
  64 * KIB + 9,
  700_000,
]

const database = await testDatabase()
await withClient(database.url, async (client) => {
  await client.query('create table filler (size int, n int, text text, primary key (size, n))')
  await client.query('create table written (id int primary key)')
  for (const size of SIZES)
    await client.query(
      `insert into filler select $1::int, n, repeat('x', $1::int) from generate_series(1, $2::int) n`,
      [size, Math.ceil((9 * MIB) / size)],
    )
})
const t = await testService({
  // One connection, so that each request reuses the previous one's. A short timeout reveals a connection that was not returned.
  config: {
    gateway: { max_rows: 100_000 },
    clients: { narrow: { url: database.url, max_connections: 1, statement_timeout: 2_000 } },
  },
})
after(async () => {
  await t.stop()
  await database.drop()
})
const key = await t.key(['*'], { client_name: 'narrow' })
const headers = { ...key.headers, 'x-service-client': 'narrow' }

type Reader = (address: URL) => Promise<string>

const fast: Reader = async (address) => (await fetch(address, { headers })).text()

/** Reads one chunk at a time, with pauses. */
const slow: Reader = (address) =>
  new Promise((resolve, reject) => {
    request(address, { headers }, async (response) => {
      const chunks: Buffer[] = []
      for await (const chunk of response) {
        chunks.push(chunk)
        if (chunks.length % 8 === 0) await sleep(1)
      }
      resolve(Buffer.concat(chunks).toString())
    })
      .on('error', reject)
      .end()
  })

let id = 0

/** Reads rows, writes on the same connection, and checks that the write succeeded. */
async function readAndWrite(read: Reader, size: number, limit: number): Promise<void> {
  const address = new URL(`/data?view=filler&eq_column=size&eq_value=${size}&limit=${limit}`, t.url)
  const text = await read(address)
  const about = `${limit} rows of ${size} bytes`
  assert.equal(JSON.parse(text).data.length, limit, about)
  id++
  const insert = { table_name: 'written', insert_body: { id } }
  const written = await key.send('PUT', '/gateway/insert', { headers, body: insert })
  assert.equal(written.status, 200, `${about}: ${written.text}`)
  const found = await key.get(`/data?view=written&eq_column=id&eq_value=${id}`, { headers })
  assert.deepEqual(found.body.data, [{ id }], about)
}

/** The number of rows that make up this number of bytes, and one less and one more. */
const countsAround = (size: number, bytes: number): readonly number[] =>
  [-1, 0, 1].map((more) => Math.round(bytes / (size + 40)) + more).filter((limit) => limit > 0)

/** Sizes around the limit between buffered and streamed responses. */
const LONG = [MIB, MIB + 64 * KIB, 2 * MIB]

test('the connection can write after a response whose last rows arrive with the end of the statement', async () => {
  for (let limit = 286; limit < 300; limit++) await readAndWrite(fast, 3_600, limit)
})

test('the connection can write after a response of any size with a fast reader', async () => {
  for (const size of SIZES)
    for (const bytes of [16 * KIB, 64 * KIB, MIB - 64 * KIB, MIB + 16 * KIB, ...LONG])
      for (const limit of countsAround(size, bytes)) await readAndWrite(fast, size, limit)
})

test('the connection can write after a response of any size with a slow reader', async () => {
  for (const size of SIZES.slice(1)) {
    for (const bytes of LONG)
      for (const limit of countsAround(size, bytes)) await readAndWrite(slow, size, limit)
    await readAndWrite(slow, size, Math.floor((8.5 * MIB) / size))
  }
})
