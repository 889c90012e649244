import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { actor } from '#test/harness.ts'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import { createVisitor, person } from '#test/identity-provider/visits.ts'
import { SESSION_COOKIE } from '#test/second-factor.ts'

const { idp, t, db, idToken } = await startSocialService()
const AUTH = '/api/auth'
const signIn = (token: string) =>
  t.anon.post(`${AUTH}/sign-in/social`, { provider: 'acme', idToken: { token } })

test('an ID token that the service gives out signs no one in, and shows nothing', async () => {
  idp.visitor = person('Ada')
  const visitor = createVisitor(t)
  assert.equal(await visitor.signIn(), '/app')
  const thief = actor(t.url, { authorization: `Bearer ${visitor.cookie(SESSION_COOKIE)}` })
  await db.updateTable('session').set({ authTime: sql<Date>`auth_time - interval '3 days'` }).execute()
  for (const path of ['get-access-token', 'refresh-token']) {
    const { status, body } = await thief.post(`${AUTH}/${path}`, { providerId: 'acme' })
    assert.equal(status, 200)
    assert.ok(body.idToken, path)
    const shown = { provider: 'acme', idToken: { token: body.idToken } }
    for (const answer of [
      await signIn(body.idToken),
      await thief.post(`${AUTH}/reauthenticate`, shown),
      await thief.post(`${AUTH}/link-social`, shown),
    ])
      assert.deepEqual([answer.status, answer.body.code], [401, 'INVALID_TOKEN'], path)
  }
})

test('an ID token that was shown, and would be taken again, is not given out', async () => {
  const { sub, email } = person('Native')
  const { body } = await signIn(await idToken({ sub, email, email_verified: true }))
  const user = actor(t.url, { authorization: `Bearer ${body.token}` })
  const given = await user.post(`${AUTH}/get-access-token`, { providerId: 'acme' })
  assert.deepEqual([given.status, given.body.idToken], [200, null])
})
