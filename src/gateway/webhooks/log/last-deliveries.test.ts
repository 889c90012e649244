import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { testService } from '#test/harness.ts'
import { lastDeliveries } from './store.ts'

const t = await testService()

test('the last delivery of webhooks that have none is found without reading those of one that has all', async () => {
  const { db } = t.service.kernel
  const run = (text: string) => sql.raw(text).execute(db)
  await run(`insert into service.webhook (id, client_name, route_keys, url, sealed_secret, timeout_ms, created_at, updated_at)
    select gen_random_uuid(), 'default', '{gateway_insert}', 'https://example.com', 'x', 1000, now(), now() from generate_series(1, 20)`)
  await run(`insert into service.webhook_event (id, route_key, body, created_at)
    select gen_random_uuid(), 'gateway_insert', '{}', now() from generate_series(1, 20000)`)
  await run(`insert into service.webhook_delivery (id, webhook_id, event_id, next_attempt_at, created_at)
    select gen_random_uuid(), (select id from service.webhook limit 1), id, now() + interval '1 day', now() from service.webhook_event`)
  await run('analyze service.webhook_delivery')
  const ids = (await db.selectFrom('webhook').select('id').execute()).map(({ id }) => id)
  const { found, read } = await db.transaction().execute(async (trx) => {
    const found = await lastDeliveries(trx, ids)
    const { rows } = await sql<{ read: string }>`
      select idx_tup_fetch as read from pg_stat_xact_user_tables where relname = 'webhook_delivery'`.execute(
      trx,
    )
    return { found, read: Number(rows[0]?.read) }
  })
  assert.equal(found.length, 1)
  assert.ok(read < 100, `${read} deliveries were read`)
})
