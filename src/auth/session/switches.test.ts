import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'
import { whileArriving } from '#test/slow-body.ts'

const LIST_SESSIONS = ['GET', '/api/auth/list-sessions'] as const
const REVOCATION_PATHS = [
  '/api/auth/revoke-session',
  '/api/auth/revoke-sessions',
  '/api/auth/revoke-other-sessions',
]

test('if require_authentication is off, session routes give empty results without a session, and other routes still require one', async () => {
  const t = await testService({ config: { auth: { session_management: { require_authentication: false } } } })
  const session = await t.anon.get('/api/auth/get-session')
  assert.deepEqual([session.status, session.text], [200, 'null'])
  const { body: document } = await t.anon.get('/openapi.json')
  const { schema } = document.paths['/api/auth/get-session'].get.responses[200].content['application/json']
  assert.deepEqual(schema.anyOf, [{ $ref: '#/components/schemas/SessionAndUser' }, { type: 'null' }])
  assert.deepEqual((await t.anon.get('/api/auth/list-sessions')).body, [])
  assert.deepEqual((await t.anon.post('/api/auth/sign-out')).body, { success: true })
  for (const path of REVOCATION_PATHS) {
    const { body } = await t.anon.post(path, { token: 'x' })
    assert.equal(body.count, 0, path)
  }
  assert.equal((await t.anon.post('/api/auth/update-user', { name: 'x' })).status, 401)
  const ada = await t.signUp('Ada')
  assert.equal((await ada.get('/api/auth/get-session')).body.user.email, ada.email)
  // Of several concurrent requests, one ends the session, and the others have no session any more.
  const postFiveTimes = (path: string) =>
    Promise.all(Array.from({ length: 5 }, async () => (await ada.post(path)).body))
  const counts = (await postFiveTimes('/api/auth/revoke-sessions')).map(({ count }) => count)
  assert.deepEqual(counts.toSorted(), [0, 0, 0, 0, 1])
  const bob = await t.signUp('Bob')
  const signOuts = await Promise.all(Array.from({ length: 5 }, () => bob.post('/api/auth/sign-out')))
  assert.deepEqual([...new Set(signOuts.map(({ status }) => status))], [200])
  // A session that ends while the body arrives is none.
  const cem = await t.signUp('Cem')
  const asked = { path: '/api/auth/get-session', headers: cem.headers, body: {} }
  const answer = await whileArriving(t.url, asked, () => cem.post('/api/auth/revoke-sessions'))
  assert.match(answer, /^HTTP\/1\.1 200 /)
  assert.equal(answer.split('\r\n\r\n')[1], 'null')
})

test('routes of session listing and revocation do not exist if the configuration disables them', async () => {
  const off = await testService({
    config: {
      auth: { session_management: { enable_session_listing: false, enable_session_revocation: false } },
    },
  })
  const ada = await off.signUp('Ada')
  assert.equal((await ada.send(...LIST_SESSIONS)).status, 404)
  for (const path of REVOCATION_PATHS) assert.equal((await ada.post(path, { token: 'x' })).status, 404)
  assert.equal((await ada.get('/api/auth/get-session')).status, 200)
})
