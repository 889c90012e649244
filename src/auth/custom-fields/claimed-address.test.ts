import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PASSWORD } from '#test/harness.ts'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import { createVisitor, person } from '#test/identity-provider/visits.ts'

const { t, idp, db } = await startSocialService({
  hide_registered_emails: true,
  email_password: { require_email_verification: true },
  user: { fields: { company: { required: true } } },
})

test('a required field tells nobody whether an address that a provider only claims has an account', async () => {
  const email = 'owner@example.com'
  const owner = { name: 'Ada', email, password: PASSWORD, company: 'A' }
  assert.equal((await t.anon.post('/api/auth/sign-up/email', owner)).status, 200)
  const outcome = async (claimed: string) => {
    idp.visitor = { ...person('Claims'), email: claimed, email_verified: false }
    return createVisitor(t).signIn()
  }
  assert.equal(await outcome(email), '/failed?error=missing_field')
  assert.equal(await outcome('nobody@example.com'), '/failed?error=missing_field')
  const { length } = await db.selectFrom('user').select('id').execute()
  assert.equal(length, 1)
})
