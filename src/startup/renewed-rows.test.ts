import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { deleteExpiredRealtimeTickets } from '#gateway/realtime/store.ts'
import { deleteExpiredKnownDevices } from '#identity/known-devices.ts'
import { deleteExpiredTrustedDevices } from '#identity/trusted-devices.ts'
import { testService } from '#test/harness.ts'

const t = await testService()
const { db, now, random } = t.service.kernel
const ada = await t.signUp('Ada')

const at = (milliseconds: number): Date => new Date(now().getTime() + milliseconds)
const bytes = () => random(32)
const ticket = { ticketHash: bytes(), sealed: '', body: '', expiresAt: at(-1_000) }
const device = { userId: ada.id, expiresAt: at(-1_000), createdAt: at(-2_000) }
await db.insertInto('realtimeTicket').values(ticket).execute()
await db
  .insertInto('trustedDevice')
  .values({ ...device, id: ada.id, tokenHash: bytes() })
  .execute()
await db
  .insertInto('knownDevice')
  .values({ ...device, id: ada.id, deviceHash: bytes() })
  .execute()

for (const [table, prune] of [
  ['knownDevice', deleteExpiredKnownDevices],
  ['trustedDevice', deleteExpiredTrustedDevices],
  ['realtimeTicket', deleteExpiredRealtimeTickets],
] as const)
  test(`a row of ${table} that is renewed while expired ones are pruned stays`, async () => {
    const { pruned } = await db.transaction().execute(async (renewing) => {
      await renewing
        .updateTable(table)
        .set({ expiresAt: at(60_000) })
        .execute()
      const pruned = prune(db, now(), 1_000)
      await Promise.race([pruned, sleep(500)])
      // Not awaited here: it might wait for this transaction.
      return { pruned }
    })
    assert.equal(await pruned, 0)
    assert.ok((await db.selectFrom(table).select('expiresAt').execute()).length > 0)
  })
