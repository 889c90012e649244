import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { newTotpSecret } from '#auth/two-factor/totp.ts'
import { sendMail } from '#kernel/mail/mailer.ts'
import { secureRandom } from '#kernel/random.ts'
import type { SealPurpose } from '#kernel/secrets.ts'
import { createSecrets, newSecret } from '#kernel/secrets.ts'
import { testDatabase } from '#test/database.ts'
import { TEST_SECRET, testService } from '#test/harness.ts'
import { codeOf, insertFactor, pendingSignIn } from '#test/second-factor.ts'
import { sealUnbound } from '#test/unbound-seal.ts'
import { bindSealed } from './bind-sealed.ts'

const t = await testService()
const { kernel } = t.service
const { db } = kernel
const AUTH = '/api/auth'
const before = (purpose: SealPurpose, plain: string) => sealUnbound(kernel.secrets, purpose, plain)

/** Everything as the version before has sealed it. Returns checks of whether it opens. */
async function sealedBefore(client_name: string) {
  const ada = await t.signUp('Ada')
  await insertFactor(t, ada)
  const secret = newTotpSecret(secureRandom)
  await db
    .updateTable('twoFactor')
    .set({ secret: before('two-factor-secret', secret) })
    .where('userId', '=', ada.id)
    .execute()
  const { url } = await testDatabase()
  await t.admin.post('/admin/clients', { client_name, url })
  await db
    .updateTable('databaseClient')
    .set({ sealedUrl: before('client-url', url) })
    .where('clientName', '=', client_name)
    .execute()
  await t.mails()
  const mail = { to: ada.email, subject: 'Hello', text: 'Hello', html: '' }
  await sendMail(kernel, mail)
  await t.anon.post(`${AUTH}/forget-password`, { email: ada.email })
  const request = { name: 'reset-password', request: { email: ada.email, source: {} } }
  for (const [field, value] of Object.entries({ mail, request }))
    await sql`update service_jobs.job set data = jsonb_set(data, ${[field]}::text[], to_jsonb(${before('mail', JSON.stringify(value))}::text))
      where state = 'created' and data ? ${field}`.execute(db)
  await kernel.coherence.settle()
  return {
    async signIn() {
      const { token } = (await pendingSignIn(t.anon, ada.email)).body
      return (await t.anon.post(`${AUTH}/two-factor/verify-totp`, { token, code: codeOf(t, secret) })).status
    },
    async reach() {
      await kernel.coherence.settle()
      const headers = { 'x-service-client': client_name }
      return (await t.admin.post('/gateway/fetch', { table_name: 'note' }, { headers })).body.code
    },
    /** Jobs that have failed are tried again. */
    async mailed() {
      await sql`update service_jobs.job set start_after = now() where state = 'retry'`.execute(db)
      return (await t.mails()).length
    },
  }
}

test('what was sealed without an owner opens for its row after the upgrade, and for a day more', async () => {
  const first = await sealedBefore('first')
  assert.deepEqual([await first.signIn(), await first.reach()], [401, 'client_unavailable'])
  await bindSealed(kernel)
  assert.deepEqual([await first.signIn(), await first.reach()], [200, 'table_not_found'])
  assert.equal(await first.mailed(), 2)

  // A process of the version before still runs.
  const second = await sealedBefore('second')
  assert.deepEqual([await second.signIn(), await second.mailed()], [401, 0])
  t.advance(86_000_000)
  await bindSealed(kernel)
  assert.deepEqual([await second.signIn(), await second.reach()], [200, 'table_not_found'])
  assert.equal(await second.mailed(), 2)

  const late = await sealedBefore('late')
  t.advance(1_000_000)
  await bindSealed(kernel)
  assert.deepEqual(
    [await late.signIn(), await late.reach(), await late.mailed()],
    [401, 'client_unavailable', 0],
  )
})

test('an upgrade together with a new secret binds what the previous one has sealed', async () => {
  await sql`update service.installation set sealed_for_owners_at = null`.execute(db)
  const ada = await t.signUp('Ada')
  await insertFactor(t, ada)
  const ofAda = db.updateTable('twoFactor').where('userId', '=', ada.id)
  await ofAda.set({ secret: before('two-factor-secret', 'A') }).execute()
  const next = newSecret(secureRandom)
  await bindSealed({ ...kernel, secrets: createSecrets(next, secureRandom, TEST_SECRET) })
  const { secret } = await db
    .selectFrom('twoFactor')
    .select('secret')
    .where('userId', '=', ada.id)
    .executeTakeFirstOrThrow()
  assert.equal(createSecrets(next, secureRandom).open('two-factor-secret', secret ?? '', ada.id), 'A')
})
