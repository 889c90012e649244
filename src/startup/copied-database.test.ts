import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultConfig } from '#kernel/config/config.ts'
import { seeInstallation } from '#kernel/db/installation.ts'
import { secureRandom } from '#kernel/random.ts'
import { createSecrets } from '#kernel/secrets.ts'
import { testDatabase, withClient } from '#test/database.ts'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { actor, PASSWORD, TEST_SECRET, testService } from '#test/harness.ts'
import { addEvents, addWebhook } from '#test/webhooks.ts'
import { settleInstallation } from './control-database.ts'
import { offerFirstAdminAt } from './first-admin.ts'

const AUTH = '/api/auth'
const config = { auth: EVERY_FEATURE }

test('a copy takes over no session, ticket, mail or delivery: each could be used, or sent, in both', async () => {
  const original = await testService({ config })
  const { kernel } = original.service
  const ada = await original.signUp('Ada')
  const { token } = (await ada.get(`${AUTH}/one-time-token/generate`)).body
  await original.anon.post(`${AUTH}/forget-password`, { email: ada.email })
  const { id } = await addWebhook(kernel, { url: 'http://127.0.0.1:1' })
  await addEvents(kernel, id)
  const sessionId = (await ada.get(`${AUTH}/get-session`)).body.session.id
  const link = await offerFirstAdminAt(original.controlUrl, original.config, secureRandom)
  assert.ok(link)
  await original.stop()

  const template = new URL(original.controlUrl).pathname.slice(1)
  const { url: controlUrl } = await testDatabase({ template, isControl: true })
  const asking = {
    secrets: createSecrets(TEST_SECRET, secureRandom),
    mismatch: '',
    takeOver: 'copy',
  } as const
  const seen = await withClient(controlUrl, (client) => seeInstallation(client, asking))
  const opening = { ...asking, random: secureRandom, report: () => {}, createsMissing: true }
  await settleInstallation(controlUrl, seen, { ...opening, config: defaultConfig() })

  const copy = await testService({ config, controlUrl })
  assert.equal((await actor(copy.url, ada.headers).get(`${AUTH}/get-session`)).status, 401)
  const redeemed = await copy.anon.post(`${AUTH}/one-time-token/verify`, { token })
  assert.deepEqual([redeemed.status, redeemed.body.code], [400, 'INVALID_TOKEN'])
  const admin = { token: link, name: 'Root', email: 'root@example.com', password: PASSWORD }
  const made = await copy.anon.post(`${AUTH}/admin/create-first-admin`, admin)
  assert.deepEqual([made.status, made.body.code], [401, 'INVALID_TOKEN'])
  assert.deepEqual(await copy.mails(), [])
  const { db } = copy.service.kernel
  assert.deepEqual(await db.selectFrom('session').selectAll().where('id', '=', sessionId).execute(), [])
  assert.deepEqual(await db.selectFrom('webhookDelivery').select('status').execute(), [{ status: 'expired' }])
  assert.equal((await db.selectFrom('user').select('id').where('id', '=', ada.id).execute()).length, 1)
})
