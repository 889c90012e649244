import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PASSWORD } from '#test/harness.ts'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import { createVisitor, person } from '#test/identity-provider/visits.ts'

const service = await startSocialService({ two_factor: { required_for: ['admin'] } })
const { clock, idp, t, kernel, db, accountsOf, idToken } = service

/** A user with a session, in a browser. */
const signedIn = async (name: string) => {
  const [user, visitor] = [await t.signUp(name), createVisitor(t)]
  visitor.setCookie('service-auth.session-token', user.token)
  return { ...user, visitor }
}

/** Makes the last proof of the user's sessions as old as it may be to link an account, but for a minute. */
const age = ({ id }: { readonly id: string }) =>
  db
    .updateTable('session')
    .set({ authTime: new Date(kernel.now().getTime() - 86_400_000 + 60_000) })
    .where('userId', '=', id)
    .execute()

test('a link flow is finished only while its session is fresh', async () => {
  const ada = await signedIn('Slow')
  idp.visitor = person('Slow', { email: ada.email })
  await age(ada)
  const callback = await ada.visitor.visit(await ada.visitor.begin({}, '/link-social'))
  clock.advance(60_001)
  assert.equal(await ada.visitor.arrive(callback), '/failed?error=session_not_fresh')
  assert.deepEqual(await accountsOf(idp.visitor.sub), [])
})

test('a link flow is not finished when the role of the user requires a second factor by then', async () => {
  const ada = await signedIn('Promoted')
  idp.visitor = person('Promoted', { email: ada.email })
  const callback = await ada.visitor.visit(await ada.visitor.begin({}, '/link-social'))
  await db.updateTable('user').set({ role: 'admin' }).where('id', '=', ada.id).execute()
  assert.equal(await ada.visitor.arrive(callback), '/failed?error=two_factor_required')
  assert.deepEqual(await accountsOf(idp.visitor.sub), [])
})

test('a link flow is not finished by a former token of its session', async () => {
  const ada = await signedIn('Renewed')
  idp.visitor = person('Renewed', { email: ada.email })
  const callback = await ada.visitor.visit(await ada.visitor.begin({}, '/link-social'))
  assert.equal((await ada.post('/api/auth/reauthenticate', { password: PASSWORD })).status, 200)
  // Of a thief, whose cookie is refused by now.
  ada.visitor.setCookie('service-auth.session-token', undefined)
  assert.equal(await ada.visitor.arrive(callback), '/failed?error=state_mismatch')
  assert.deepEqual(await accountsOf(idp.visitor.sub), [])
})

test('an ID token that is checked for long links nothing when the session is not fresh any more', async () => {
  const ada = await signedIn('Waits')
  const { sub } = person('Waits')
  await idp.rotateKey()
  clock.advance(11_000)
  await age(ada)
  const token = await idToken({ sub, email: ada.email })
  idp.intercept = (request) => {
    if (request.url === '/jwks') clock.advance(60_001)
    return false
  }
  const { status, body } = await ada.post('/api/auth/link-social', { provider: 'acme', idToken: { token } })
  idp.intercept = () => false
  assert.deepEqual([status, body.code], [403, 'SESSION_NOT_FRESH'])
  assert.deepEqual(await accountsOf(sub), [])
})

test('link-social needs a session, and one that began lately', async () => {
  const ada = await signedIn('Stale')
  assert.equal((await t.anon.post('/api/auth/link-social', { provider: 'acme' })).status, 401)
  clock.advance(86_400_001)
  const answer = await ada.post('/api/auth/link-social', { provider: 'acme' })
  assert.deepEqual([answer.status, answer.body.code], [403, 'SESSION_NOT_FRESH'])
})
