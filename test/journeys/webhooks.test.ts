import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { test } from 'node:test'
import { newFolder } from '#test/embedded.ts'
import { TEST_SECRET, testService } from '#test/harness.ts'
import { addEvents, addWebhook } from '#test/webhooks.ts'
import { runHere } from './command.ts'

const t = await testService()
const { kernel } = t.service

test('gatehouse webhooks lists webhooks, shows why attempts had no response, and makes deliveries again', async (context) => {
  const folder = await newFolder(context)
  await mkdir(folder)
  const env = { DATABASE_URL: t.controlUrl, SERVICE_SECRET: TEST_SECRET }
  const run = (...args: string[]) => runHere(folder, ['webhooks', ...args], env)
  assert.equal((await run('list')).stdout, 'none\n')

  const url = 'https://receiver.example.invalid/hooks'
  const { id } = await addWebhook(kernel, { url })
  const paused = await addWebhook(kernel, { url, isActive: false })
  const [header, ...rows] = (await run('list', '--client', 'default')).stdout.trimEnd().split('\n')
  assert.match(header ?? '', /^id +event +client +table +url +active +failures +reason$/)
  assert.match(rows[0] ?? '', new RegExp(`^${id} +gateway_insert +default +– +${url} +true +0 +–$`))
  assert.equal(rows.length, 2)
  assert.equal((await run('list', '--client', 'other')).stdout, 'none\n')
  assert.equal(JSON.parse((await run('list', '--json')).stdout)[1].id, paused.id)

  await addEvents(kernel, id)
  await kernel.db
    .updateTable('webhookDelivery')
    .set({ status: 'failed', attempt: 8, nextAttemptAt: null, error: 'The endpoint refused the connection.' })
    .execute()
  const listed = await run('deliveries', id)
  assert.match(listed.stdout, / failed +8 +The endpoint refused the connection\. +– /)
  assert.deepEqual(await run('replay', id), { code: 0, stdout: '1 delivery is due again\n', stderr: '' })

  const refused = await run('replay', paused.id)
  assert.deepEqual([refused.code, refused.stdout], [1, ''])
  assert.match(
    refused.stderr,
    new RegExp(`by PATCH /admin/webhooks/${paused.id} with {"is_active": true}\\.$`, 'm'),
  )
  const absent = await run('deliveries', 'nothing')
  assert.deepEqual(
    [absent.code, absent.stderr],
    [1, 'There is no webhook nothing. See gatehouse webhooks list.\n'],
  )
  assert.equal((await run('replay', id, '--since', 'yesterday')).code, 2)
})
