import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import { testService } from '#test/harness.ts'
import { lastDeliveries, listAfter, listDeliveries } from './store.ts'

const t = await testService()
const { db } = t.service.kernel
const run = (text: string) => sql.raw(text).execute(db)

/** Returns what the work does, and how many deliveries were read for it. */
const reading = <Found>(work: (db: Db) => Promise<Found>) =>
  db.transaction().execute(async (trx) => {
    const found = await work(trx)
    const { rows } = await sql<{ read: string }>`
      select idx_tup_fetch + seq_tup_read as read from pg_stat_xact_user_tables where relname = 'webhook_delivery'`.execute(
      trx,
    )
    return { found, read: Number(rows[0]?.read) }
  })

const NIL = '00000000-0000-0000-0000-000000000000'

const EVENT = `insert into service.webhook_event (id, route_key, body, created_at)
  select gen_random_uuid(), 'gateway_insert', '{}', now() from generate_series(1, 20000)`

test('the last delivery of webhooks that have none is found without reading those of one that has all', async () => {
  await run(`insert into service.webhook (id, client_name, route_keys, url, sealed_secret, timeout_ms, created_at, updated_at)
    select gen_random_uuid(), 'default', '{gateway_insert}', 'https://example.com', 'x', 1000, now(), now() from generate_series(1, 20)`)
  await run(EVENT)
  await run(`insert into service.webhook_delivery (id, webhook_id, event_id, next_attempt_at, created_at)
    select gen_random_uuid(), (select id from service.webhook limit 1), id, now() + interval '1 day', now() from service.webhook_event`)
  await run('analyze service.webhook_delivery')
  const ids = (await db.selectFrom('webhook').select('id').execute()).map(({ id }) => id)
  const { found, read } = await reading((db) => lastDeliveries(db, ids))
  assert.equal(found.length, 1)
  assert.ok(read < 100, `${read} deliveries were read`)
})

test('the log of a webhook is found without reading the newer or older deliveries of others', async () => {
  const webhooks = await db.selectFrom('webhook').select('id').execute()
  const { webhookId } = await db
    .selectFrom('webhookDelivery')
    .select('webhookId')
    .limit(1)
    .executeTakeFirstOrThrow()
  const other = webhooks.find(({ id }) => id !== webhookId)?.id
  for (const [first, count] of [
    ['0', 2000],
    ['f', 2000],
  ])
    await run(`insert into service.webhook_delivery (id, webhook_id, event_id, next_attempt_at, created_at)
      select overlay(gen_random_uuid()::text placing repeat('${first}', 8) from 1)::uuid, '${other}', id, now() + interval '1 day', now()
      from service.webhook_event limit ${count}`)
  const page = { limit: 10, offset: 0 }
  const newest = await reading((db) => listDeliveries(db, { webhookId }, page))
  const oldest = await reading((db) => listAfter(db, { webhookId, status: 'pending' }, NIL, 10))
  for (const { found, read } of [newest, oldest]) {
    assert.equal(found.length, 10)
    assert.ok(read < 100, `${read} deliveries were read`)
  }
})
