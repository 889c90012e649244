import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'
import { createInvitation, createOrganization, createPerson } from '#test/organizations.ts'

const t = await testService()
const { db } = t.service.kernel
const rowOf = (action: string, targetId: string) =>
  db
    .selectFrom('auditEvent')
    .selectAll()
    .where('action', '=', action)
    .where('targetId', '=', targetId)
    .executeTakeFirstOrThrow()

test('a row has a request id that is ours or a UUID, and no text of a caller', async () => {
  const given = '6f9619ff-8b86-4011-b42d-00cf4fc964ff'
  for (const [id, kept] of [
    ['ada:example.com', null],
    ['call-me-555.1234', null],
    [given, given],
  ] as const) {
    const ada = await createPerson(t)
    const headers = { 'x-request-id': id }
    const answer = await t.anon.send('POST', '/api/auth/update-user', {
      body: { name: 'New' },
      headers: { ...headers, ...ada.headers },
    })
    assert.deepEqual([answer.status, answer.headers.get('x-request-id')], [200, id], answer.text)
    assert.equal((await rowOf('user.updated', ada.id)).requestId, kept)
  }
})

test('the row of an accepted invitation names the invitation and the inviter', async () => {
  const [ada, bea] = [await createPerson(t), await createPerson(t)]
  const organization = await createOrganization(t, [[ada, 'owner']])
  const invitationId = await createInvitation(t, organization, { from: ada, to: bea.email })
  const accepted = await bea.post('/api/auth/organization/accept-invitation', { invitationId })
  assert.equal(accepted.status, 200, accepted.text)
  const { details, actorId } = await rowOf('member.added', bea.id)
  assert.equal(actorId, bea.id)
  assert.deepEqual(details, { role: 'member', invitation: invitationId, inviter: ada.id })
})
