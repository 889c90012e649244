import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import { testService } from '#test/harness.ts'

const t = await testService()
const client = new pg.Client({ connectionString: t.controlUrl })
await client.connect()
after(() => client.end())

const FEW = 250
const MANY = 8_000

await client.query(
  `insert into service."user" (id, name, email, created_at, updated_at)
   select gen_random_uuid(), 'Ada', 'bulk-' || n || '@example.com', now(), now() from generate_series(1, $1) as n`,
  [MANY],
)
await client.query(
  `insert into service.session (id, user_id, token_hash, expires_at, created_at, updated_at, remembered)
   select gen_random_uuid(), id, sha256(id::text::bytea), now() + '1 day', now(), now(), true from service."user"`,
)

/** The least milliseconds of three changes of so many rows. */
async function timeOf(table: string, count: number): Promise<number> {
  const set = table === 'session' ? `user_agent = gen_random_uuid()` : `name = gen_random_uuid()`
  const times = []
  for (let round = 0; round < 3; round++) {
    const from = performance.now()
    await client.query(
      `update service."${table}" set ${set} where id in (select id from service."${table}" limit $1)`,
      [count],
    )
    times.push(performance.now() - from)
  }
  return Math.min(...times)
}

test('a change of many rows is told in linear time, also after a change of one row', async () => {
  for (const table of ['user', 'session']) {
    await timeOf(table, 1)
    const [few, many] = [await timeOf(table, FEW), await timeOf(table, MANY)]
    // Linear: 32. Quadratic: 1,024. Other tests run at the same time.
    assert.ok(many / few < 180, `${table}: ${FEW} rows ${few} ms, ${MANY} rows ${many} ms`)
  }
})
