import assert from 'node:assert/strict'
import { test } from 'node:test'
import { browser } from '#test/cookie-jar.ts'
import { type Actor, PASSWORD, testService } from '#test/harness.ts'
import { createPerson, type Person } from '#test/organizations.ts'

const t = await testService()
const { db } = t.service.kernel
const admin = await createPerson(t, { role: 'admin' })

const impersonate = (who: Actor, { id: userId }: { id: string }) =>
  who.post('/api/auth/admin/impersonate-user', { userId })
const statusOf = async (who: Actor) => (await who.get('/api/auth/get-session')).status
const SIDE = 'service-auth.admin-session'
const SESSION = t.config.session.cookie_name
const post = (who: Actor, path: string, body: object) => who.post(`/api/auth/${path}`, body)
const revokeAll = (who: Person) => post(who, 'revoke-sessions', {})

/** Every end of an impersonation but stop-impersonating, and what its browser has after the next request. */
const ENDS: Readonly<Record<string, (side: { chief: Person; ada: Person }) => Promise<unknown>>> = {
  'the hour is over': async () => t.advance(3_601_000),
  'the admin’s sessions are revoked': ({ chief }) => revokeAll(chief),
  'the user’s sessions are revoked': ({ ada }) => revokeAll(ada),
  'the user is banned': ({ ada }) => post(admin, 'admin/ban-user', { userId: ada.id }),
  'the user is promoted': ({ ada }) => post(admin, 'admin/set-role', { userId: ada.id, role: 'admin' }),
}
for (const [name, end] of Object.entries(ENDS))
  test(`the browser keeps no token of the admin when ${name}`, async () => {
    const [chief, ada] = [await createPerson(t, { role: 'admin' }), await createPerson(t)]
    const page = browser(t, chief)
    await impersonate(page, ada)
    assert.deepEqual([...page.jar.keys()].toSorted(), [SESSION, SIDE].toSorted())
    await end({ chief, ada })
    assert.equal(await statusOf(page), 401)
    assert.deepEqual([...page.jar], [])
  })

test('the browser keeps no token of the admin when another user signs in, with a second factor too', async () => {
  for (const twoFactorEnabled of [false, true]) {
    const [chief, ada] = [await createPerson(t, { role: 'admin' }), await createPerson(t)]
    const [page, eve] = [browser(t, chief), await t.signUp('Eve')]
    await db.updateTable('user').set({ twoFactorEnabled }).where('id', '=', eve.id).execute()
    await impersonate(page, ada)
    const headers = { origin: t.url }
    const body = { email: eve.email, password: PASSWORD }
    const answer = await page.send('POST', '/api/auth/sign-in/email', { body, headers })
    assert.equal(answer.status, 200, answer.text)
    assert.equal(page.jar.has(SIDE), false)
    assert.equal(page.jar.has(SESSION), !twoFactorEnabled)
  }
})

test('a side cookie without an impersonated session means nothing, and goes with the next request', async () => {
  const lax = await testService({
    controlUrl: t.controlUrl,
    config: { auth: { session_management: { require_authentication: false } } },
  })
  for (const [service, without] of [
    [t, 401],
    [lax, 200],
  ] as const) {
    for (const [session, status] of [
      [admin.token, 200],
      ['dead'.padEnd(43, 'x'), without],
      [undefined, without],
    ] as const) {
      const cookies = [`${SIDE}=${admin.token}`, ...(session === undefined ? [] : [`${SESSION}=${session}`])]
      const answer = await service.anon.get('/api/auth/get-session', {
        headers: { cookie: cookies.join('; ') },
      })
      const cleared = answer.headers.getSetCookie().map((cookie) => cookie.replace(/=.*/, ''))
      assert.equal(answer.status, status)
      assert.equal(cleared.includes(SIDE), true, String(session))
      assert.equal(cleared.includes(SESSION), session !== undefined && session !== admin.token)
    }
  }
})

test('a Bearer token that is not valid clears no cookie', async () => {
  const headers = { authorization: `Bearer ${'x'.repeat(43)}`, cookie: `${SESSION}=${admin.token}` }
  const answer = await t.anon.get('/api/auth/get-session', { headers })
  assert.deepEqual([answer.status, answer.headers.getSetCookie()], [401, []])
})
