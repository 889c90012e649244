import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { deleteOldInvitations } from '#auth/organization/invitation-store.ts'
import { deleteOldFailures } from '#auth/two-factor/store.ts'
import { deleteExpiredSessions } from '#identity/sessions.ts'
import { deleteOldCodeCounts } from '#identity/wrong-mail-codes.ts'
import type { Db } from '#kernel/db/connect.ts'
import { deleteExpiredLimits } from '#kernel/http/limits/limits.ts'
import { testService } from '#test/harness.ts'
import { createInvitation, createOrganization, createPerson } from '#test/organizations.ts'
import { insertFactor } from '#test/second-factor.ts'

const t = await testService()
const { db, now } = t.service.kernel

type Prune = (db: Db, now: Date, batch: number) => Promise<number>
/** By table; with the columns of a row that is over, and differs from all others. */
const PRUNES: Readonly<Record<string, readonly [Prune, string]>> = {
  session: [deleteExpiredSessions, `'id', one, 'token_hash', '\\x' || md5(one::text), 'expires_at', past`],
  invitation: [deleteOldInvitations, `'id', one, 'email', one, 'expires_at', past`],
  wrong_code: [deleteOldFailures, `'counter', one, 'began_at', past`],
  wrong_mail_code: [deleteOldCodeCounts, `'address', one, 'began_at', past`],
  rate_limit: [deleteExpiredLimits, `'key', one, 'expire', 1`],
}

async function insertModels(): Promise<void> {
  const ada = await createPerson(t)
  const acme = await createOrganization(t, [[ada, 'owner']])
  await createInvitation(t, acme, { from: ada, to: 'bea@example.com' })
  await insertFactor(t, ada)
  await sql`insert into service.wrong_code (two_factor_id, counter, failures, began_at)
    select id, 'model', 1, now() from service.two_factor`.execute(db)
  const counted = { address: 'model', counter: 'strangers', failures: 1, beganAt: now() }
  await db.insertInto('wrongMailCode').values(counted).execute()
  await db.insertInto('rateLimit').values({ key: 'model', points: 1, expire: '9999999999999' }).execute()
}

test('a batch of a prune has its size, also by a plan from when the table was small', async () => {
  await insertModels()
  for (const [table, [prune, over]] of Object.entries(PRUNES))
    await db.transaction().execute(async (db) => {
      const add = (count: number) =>
        sql`insert into ${sql.table(`service.${table}`)}
          select (jsonb_populate_record(model, jsonb_build_object(${sql.raw(over)}))).*
          from (select row as model from ${sql.table(`service.${table}`)} row limit 1) as models,
            lateral (select gen_random_uuid() as one, now() - interval '40 days' as past from generate_series(1, ${count})) as added`.execute(
          db,
        )
      await sql`set local plan_cache_mode = force_generic_plan`.execute(db)
      await sql`analyze ${sql.table(`service.${table}`)}`.execute(db)
      await prune(db, now(), 10)
      await add(50)
      assert.equal(await prune(db, now(), 10), 10, table)
    })
})
