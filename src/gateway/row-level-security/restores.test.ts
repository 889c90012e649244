import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { secureRandom, uuidv7 } from '#kernel/random.ts'
import { actor, type TestService, testService } from '#test/harness.ts'
import { createSecuredClient } from '#test/secured-client.ts'

const secured = await createSecuredClient()
const { roles, sql, settings } = secured
const t = await testService({ config: { clients: { secured: settings } } })
after(async () => {
  await t.stop()
  await secured.drop()
})
await sql(`create table note (id int primary key, text text);
  insert into note values (1, $$hidden$$);
  alter table note enable row level security;
  grant select, insert on note to ${roles.anon}`)

const key = await t.key(['note.*'], { client_name: 'secured' })
const reader = actor(t.url, { ...key.headers, 'x-service-client': 'secured' })
const admin = actor(t.url, { ...t.admin.headers, 'x-service-client': 'secured' })
const notesOf = async (who: typeof reader) => {
  const { status, body } = await who.post('/gateway/fetch', { table_name: 'note' })
  return status === 200 ? body.data.length : body.code
}
const route = await admin.post('/admin/public-routes', {
  route_key: 'notes',
  client_name: 'secured',
  table_name: 'note',
  allowed_ops: ['fetch'],
  requires_key: false,
})
assert.equal(route.status, 201, route.text)

/** Runs while the row of a restore says that it runs. */
async function duringRestore(
  { service: { kernel } }: TestService,
  of: { readonly clientName: string; readonly database: string | null },
  work: () => Promise<void>,
): Promise<void> {
  const id = uuidv7(new Date(), secureRandom)
  const now = kernel.now()
  const row = { id, jobType: 'restore', status: 'pending', format: 'dump', createdAt: now, updatedAt: now }
  await kernel.db
    .insertInto('backupJob')
    .values({ ...row, ...of })
    .execute()
  const setStatus = async (status: string) => {
    await kernel.db.updateTable('backupJob').set({ status }).where('id', '=', id).execute()
    await kernel.coherence.settle()
  }
  await setStatus('running')
  try {
    await work()
  } finally {
    await setStatus('completed')
  }
}

for (const [name, of] of [
  ['another database', { clientName: 'elsewhere', database: 'another' }],
  ['the database of the client', { clientName: 'secured', database: null }],
] as const) {
  test(`while ${name} is restored, callers see and write what policies allow`, async () => {
    await duringRestore(t, of, async () => {
      assert.deepEqual([await notesOf(reader), await notesOf(admin)], [0, 1])
      const called = await t.anon.post('/public/notes/fetch', {})
      assert.deepEqual([called.status, called.body.data], [200, []], called.text)
      const body = { table_name: 'note', insert_body: { id: 2, text: 'past the policies' } }
      assert.equal((await reader.send('PUT', '/gateway/insert', { body })).status, 403)
    })
    assert.equal((await sql('select * from note')).length, 1)
  })
}
