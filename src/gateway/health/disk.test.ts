import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { PASSWORD, testService } from '#test/harness.ts'
import { readiness } from '#test/readiness.ts'

test('with less space than server.min_free_disk the service is not ready and names the disk', async () => {
  const t = await testService({ config: { server: { min_free_disk: 2 ** 50 } } })
  const { status, body } = await readiness(t.anon)
  assert.equal(status, 503)
  assert.deepEqual(body.problems, [
    'The disk of server.data_dir is full: free space, or lower server.min_free_disk',
  ])
  const health = (await t.admin.get('/health')).body
  assert.deepEqual(
    [health.status, health.components.find(({ name }: { name: string }) => name === 'disk')?.message],
    ['degraded', body.problems[0]],
  )
})

test("if the control database's disk is full, the service is not ready from the first failed write on", async () => {
  const t = await testService()
  assert.equal((await readiness(t.anon)).status, 200)
  await withClient(t.controlUrl, async (client) => {
    await client.query(`
      create function service.full() returns trigger language plpgsql as $$
        begin raise exception 'could not extend file' using errcode = 'disk_full'; end $$;
      create trigger full_disk before insert on service."user" for each row execute function service.full()`)
  })
  const body = { name: 'Ada', email: 'ada@example.com', password: PASSWORD }
  assert.equal((await t.anon.post('/api/auth/sign-up/email', body)).status, 503)
  const ready = await readiness(t.anon)
  assert.equal(ready.status, 503)
  assert.match(ready.body.problems.join(), /^A write has failed because a disk is full/)
  assert.equal((await t.admin.get('/health')).body.status, 'degraded')
})
