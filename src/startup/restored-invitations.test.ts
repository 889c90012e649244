import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forget } from '#gateway/backups/archive/forget.ts'
import { withClient } from '#test/database.ts'
import { actor, linkIn, PASSWORD, testService } from '#test/harness.ts'
import { createOrganization, createPerson } from '#test/organizations.ts'

const ACCEPT = '/api/auth/organization/accept-invitation'

test('in a restored archive the secret of a mail proves no address, and the invitation stays', async () => {
  const t = await testService()
  const [ada, bea] = [await createPerson(t), await t.signUp('Bea')]
  await createOrganization(t, [[ada, 'owner']])
  await ada.post('/api/auth/organization/invite-member', { email: bea.email, role: 'member' })
  const link = linkIn((await t.mails()).at(-1) ?? '')
  const invitationId = new URL(link, t.url).searchParams.get('id')
  await withClient(t.controlUrl, forget)
  const { body } = await t.anon.post('/api/auth/sign-in/email', { email: bea.email, password: PASSWORD })
  const again = actor(t.url, { authorization: `Bearer ${body.token}` })
  const { code } = (await again.post(ACCEPT, { invitationId })).body
  assert.equal(code, 'EMAIL_VERIFICATION_REQUIRED_BEFORE_ACCEPTING_OR_REJECTING_INVITATION')
  const { kernel } = t.service
  const stored = await kernel.db.selectFrom('invitation').select('status').execute()
  assert.deepEqual(stored, [{ status: 'pending' }])
})
