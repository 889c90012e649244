import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backupService, NEEDS_PROGRAMS } from '#test/backup-service.ts'
import { eventually } from '#test/embedded.ts'
import type { Answer } from '#test/harness.ts'

const { t, shopUrl, onShop, drain, find, queued, done, holding, isWaiting, cities } = await backupService()
const told = ({ status, body }: Answer) => [status, body.code]
const headers = { headers: { 'x-service-client': 'branch' } }
const register = () =>
  t.admin.post('/admin/clients', { client_name: 'branch', driver: 'postgresql', url: shopUrl })
const freeze = (is_frozen: boolean) =>
  t.admin.send('PUT', '/admin/clients/branch/freeze', { body: { is_frozen } })
const backUp = () => t.admin.post('/admin/backups', { client_name: 'branch' })
const restore = (id: string) =>
  t.admin.post(`/admin/backups/${id}/restore`, { client_name: 'branch', confirm: 'branch' })
assert.equal((await register()).status, 201)
const key = await t.key(['*'], { client_name: 'branch' })
const row = (id: number) => ({ table_name: 'city', insert_body: { id, name: 'new' } })
const insert = (id: number, more: Record<string, string> = {}) =>
  key.post('/gateway/insert', row(id), { headers: { ...headers.headers, ...more } })

/** Restores a backup, and does the work while pg_restore waits for its locks. */
async function duringRestore(work: () => Promise<void>) {
  const backup = await done(await backUp())
  const id = queued(await restore(backup.id))
  let running: Promise<number> | undefined
  await holding('access share', async () => {
    running = drain()
    await eventually(isWaiting)
    await work()
  })
  await running
  return find(id)
}

test('the operator freezes and thaws a client during its restore', NEEDS_PROGRAMS, async () => {
  const restored = await duringRestore(async () => {
    assert.equal((await freeze(true)).status, 200)
    assert.equal((await freeze(false)).status, 200)
    assert.deepEqual(told(await insert(5_001)), [403, 'client_frozen'])
    assert.deepEqual(told(await backUp()), [409, 'backup_job_active'])
    assert.equal((await freeze(true)).status, 200)
  })
  assert.equal(restored.status, 'completed', restored.error_message)
  assert.deepEqual(told(await insert(5_001)), [403, 'client_frozen'])
  assert.equal((await freeze(false)).status, 200)
  assert.equal((await insert(5_001)).status, 200)
  await onShop('delete from city where id > 5000')
})

test(
  'writes that wait when a restore begins are refused, and nothing of them is stored',
  NEEDS_PROGRAMS,
  async () => {
    const before = await cities()
    const backup = await done(await backUp())
    const transaction = (id: number) =>
      key.post(
        '/gateway/transaction',
        { operations: [{ id: 'a', kind: 'insert', payload: row(id) }] },
        { headers: { ...headers.headers, 'idempotency-key': `key-${id}` } },
      )
    const accepted: Promise<Answer>[] = []
    const id = queued(await restore(backup.id))
    let running: Promise<number> | undefined
    await holding('access share', async () => {
      // Long enough for a slow machine to begin the restore.
      const batch = insert(6_001, { 'x-service-insert-window': '10000' })
      accepted.push(batch)
      await new Promise((resolve) => setTimeout(resolve, 300))
      running = drain()
      await eventually(isWaiting)
      accepted.push(transaction(6_002))
      // The lock is held until the window has ended.
      await batch
    })
    await running
    const restored = await find(id)
    assert.equal(restored.status, 'completed', restored.error_message)
    const [batched, refused] = await Promise.all(accepted)
    for (const answer of [batched, refused]) assert.deepEqual(answer && told(answer), [403, 'client_frozen'])
    assert.deepEqual(await cities(), before)
  },
)

test(
  'a client that is deleted and registered again during its restore takes writes afterwards',
  NEEDS_PROGRAMS,
  async () => {
    const restored = await duringRestore(async () => {
      assert.equal((await t.admin.send('DELETE', '/admin/clients/branch')).status, 200)
      assert.equal((await register()).status, 201)
    })
    assert.equal(restored.status, 'completed', restored.error_message)
    const fresh = await t.key(['*'], { client_name: 'branch' })
    const answer = await fresh.post('/gateway/insert', row(5_001), headers)
    assert.equal(answer.status, 200, answer.text)
  },
)
