import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setRoleByOperator } from '#auth/admin/operator.ts'
import { CONSOLE_COOKIE, SECURE_CONSOLE_COOKIE } from '#kernel/http/header-names.ts'
import { type Answer, PASSWORD, testService, type User } from '#test/harness.ts'
import { OPERATE } from '#test/operators.ts'
import { codeOf, insertFactor, TRUSTED_COOKIE } from '#test/second-factor.ts'

const APP = 'https://app.example.com'
const t = await testService({
  config: {
    auth: { trusted_origins: [APP], multi_session: { enabled: true }, last_login_method: { enabled: true } },
  },
})
const { kernel } = t.service
const own = new URL(kernel.publicUrl()).origin
const SESSION = t.config.session.cookie_name
const AUTH = '/api/auth'
const DAY = 86_400_000

/** The pages of one browser: those of the application, and those of the console, which send the header. */
function createBrowser() {
  const jar = new Map<string, string>()
  const pageWith = (headers: Readonly<Record<string, string>>) => {
    const send = async (method: string, path: string, body?: object): Promise<Answer> => {
      const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
      const sent = { ...(cookie !== '' && { cookie }), origin: own, ...headers }
      const answer = await t.anon.send(method, path, { headers: sent, ...(body && { body }) })
      for (const line of answer.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
        if (value === '') jar.delete(name)
        else jar.set(name, value)
      }
      return answer
    }
    return {
      get: (path: string) => send('GET', path),
      post: (path: string, body: object = {}) => send('POST', path, body),
      async whoAmI(): Promise<string | undefined> {
        return (await send('GET', `${AUTH}/get-session`)).body?.user?.email
      },
    }
  }
  return { jar, pageWith, app: pageWith({}), desk: pageWith(OPERATE) }
}
type Page = ReturnType<typeof createBrowser>['app']

const signIn = async (page: Page, { email }: User): Promise<Answer> => {
  const answer = await page.post(`${AUTH}/sign-in/email`, { email, password: PASSWORD })
  assert.equal(answer.status, 200, answer.text)
  return answer
}
/** A browser in which one user uses the application and another one the console. */
async function bothSignedIn() {
  const [ada, root] = [await t.signUp('Ada'), await t.signUp('Root')]
  await setRoleByOperator(kernel, root.id, 'admin')
  const browser = createBrowser()
  await signIn(browser.app, ada)
  await signIn(browser.desk, root)
  return { ...browser, ada, root }
}
const linesOf = (answer: Answer) =>
  Object.fromEntries(answer.headers.getSetCookie().map((line) => [line.split('=')[0], line]))
const refused = ({ status, body }: Answer) => [status, body?.code]

test('a sign-in with the header sets the cookie of the console, which is Strict and HttpOnly, and no other session cookie', async () => {
  const ada = await t.signUp('Ada')
  const lines = linesOf(await signIn(createBrowser().desk, ada))
  assert.match(
    lines[CONSOLE_COOKIE] ?? '',
    /^service-auth\.console=[\w-]{43}; Max-Age=\d+; Path=\/; HttpOnly; Secure; SameSite=Strict$/,
  )
  // Not of the sessions that the application keeps, nor of its last login.
  assert.deepEqual(Object.keys(lines).toSorted(), [CONSOLE_COOKIE, 'service-auth.known-device'])
  const weak = await testService({
    controlUrl: t.controlUrl,
    config: {
      server: { public_url: 'https://auth.example.com' },
      session: { cookie_secure: false, cookie_http_only: false },
    },
  })
  const headers = { ...OPERATE, origin: 'https://auth.example.com' }
  const body = { email: ada.email, password: PASSWORD }
  const answer = await weak.anon.post(`${AUTH}/sign-in/email`, body, { headers })
  const line = linesOf(answer)[SECURE_CONSOLE_COOKIE] ?? ''
  assert.match(
    line,
    /^__Host-service-auth\.console=[\w-]{43}; Max-Age=\d+; Path=\/; HttpOnly; Secure; SameSite=Strict$/,
  )
  const [cookie] = line.split(';')
  const whoIs = (cookie = '') => weak.anon.get(`${AUTH}/get-session`, { headers: { ...headers, cookie } })
  assert.equal((await whoIs(cookie)).body.user.email, ada.email)
  assert.equal(
    (await whoIs(cookie?.replace('__Host-', ''))).status,
    401,
    'what a page of http can set is not read',
  )
})

test('the console and the application of one browser have two sessions, and each reads its own only', async () => {
  const { jar, app, desk, ada, root } = await bothSignedIn()
  assert.deepEqual([await app.whoAmI(), await desk.whoAmI()], [ada.email, root.email])
  assert.equal((await desk.get('/admin/clients')).status, 200)
  const [token, operating] = [jar.get(SESSION), jar.get(CONSOLE_COOKIE)]
  jar.delete(SESSION)
  assert.equal(await app.whoAmI(), undefined)
  assert.equal(jar.get(CONSOLE_COOKIE), operating)
  jar.delete(CONSOLE_COOKIE)
  jar.set(SESSION, String(token))
  assert.equal(await desk.whoAmI(), undefined)
  assert.deepEqual(refused(await desk.get('/admin/clients')), [401, 'session_required'])
  assert.equal(jar.get(SESSION), token, 'a request of the console clears no cookie of the application')
  assert.equal(await app.whoAmI(), ada.email)
})

test('a sign-out ends the session of its own cookie, and clears no other', async () => {
  const one = await bothSignedIn()
  assert.equal((await one.desk.post(`${AUTH}/sign-out`)).status, 200)
  assert.deepEqual([one.jar.has(CONSOLE_COOKIE), await one.desk.whoAmI()], [false, undefined])
  assert.equal(await one.app.whoAmI(), one.ada.email)
  const two = await bothSignedIn()
  assert.equal((await two.app.post(`${AUTH}/sign-out`)).status, 200)
  assert.deepEqual([two.jar.has(SESSION), await two.app.whoAmI()], [false, undefined])
  assert.equal(await two.desk.whoAmI(), two.root.email)
})

test('a dead session clears its own cookie only, and what extends or renews one sets it again', async () => {
  const { jar, app, desk, ada, root } = await bothSignedIn()
  const changed = () =>
    Object.keys(Object.fromEntries([...jar].filter(([name, value]) => before.get(name) !== value)))
  let before = new Map(jar)
  const proof = await desk.post(`${AUTH}/reauthenticate`, { password: PASSWORD })
  assert.equal(proof.status, 200, proof.text)
  assert.deepEqual(changed(), [CONSOLE_COOKIE])
  before = new Map(jar)
  const newPassword = 'another good password'
  const body = { currentPassword: PASSWORD, newPassword, revokeOtherSessions: true }
  assert.equal((await desk.post(`${AUTH}/change-password`, body)).status, 200)
  assert.deepEqual(changed(), [CONSOLE_COOKIE])
  assert.deepEqual([await app.whoAmI(), await desk.whoAmI()], [ada.email, root.email])

  t.advance(2 * DAY)
  const rolled = linesOf(await desk.get(`${AUTH}/get-session`))
  assert.deepEqual(Object.keys(rolled), [CONSOLE_COOKIE])
  assert.match(rolled[CONSOLE_COOKIE] ?? '', /SameSite=Strict/)
  assert.equal(SESSION in linesOf(await app.get(`${AUTH}/get-session`)), true)

  await root.post(`${AUTH}/sign-in/email`, { email: root.email, password: newPassword })
  t.advance(8 * DAY)
  const dead = linesOf(await desk.get(`${AUTH}/get-session`))
  assert.match(dead[CONSOLE_COOKIE] ?? '', /^service-auth\.console=;/)
  assert.deepEqual([Object.keys(dead), jar.has(SESSION)], [[CONSOLE_COOKIE], true])
})

test('a sign-in of the console that waits for its second factor leaves that of the application', async () => {
  const { jar, app, desk, ada, root } = await bothSignedIn()
  const secret = await insertFactor(t, root)
  await desk.post(`${AUTH}/sign-out`)
  await signIn(desk, root)
  assert.deepEqual(
    [jar.has('service-auth.console.two-factor'), jar.has('service-auth.two-factor')],
    [true, false],
  )
  const code = codeOf(t, secret)
  assert.deepEqual(refused(await app.post(`${AUTH}/two-factor/verify-totp`, { code })), [
    400,
    'TOTP_NOT_ENABLED',
  ])
  const verified = await desk.post(`${AUTH}/two-factor/verify-totp`, { code })
  assert.equal(verified.status, 200, verified.text)
  assert.equal(jar.has('service-auth.console.two-factor'), false)
  assert.deepEqual([await app.whoAmI(), await desk.whoAmI()], [ada.email, root.email])
})

test('a demand that is not met ends the trust of the caller in this browser, and in the console none', async () => {
  const { jar, app, desk, ada, root } = await bothSignedIn()
  const trust = async (user: User) => {
    const secret = await insertFactor(t, user)
    await signIn(app, user)
    const verified = await app.post(`${AUTH}/two-factor/verify-totp`, {
      ...{ code: codeOf(t, secret), trustDevice: true },
    })
    assert.equal(verified.status, 200, verified.text)
  }
  const beginPasskey = async (page: Page) => {
    t.advance(DAY + 60_000)
    const stale = await page.get(`${AUTH}/passkey/generate-register-options`)
    assert.deepEqual(refused(stale), [403, 'SESSION_NOT_FRESH'])
  }
  const asksForCode = async (user: User) => (await signIn(app, user)).body.twoFactorRedirect === true
  await trust(ada)
  await beginPasskey(desk)
  assert.equal(await asksForCode(ada), false, 'the console has another user')
  await signIn(app, await t.signUp('Eve'))
  await beginPasskey(app)
  assert.equal(jar.has(TRUSTED_COOKIE), true, 'the device is of another user')
  assert.equal(await asksForCode(ada), false)
  await trust(root)
  await beginPasskey(desk)
  assert.equal(await asksForCode(root), false, 'the console has the same user')
  await beginPasskey(app)
  assert.equal(jar.has(TRUSTED_COOKIE), false)
  assert.equal(await asksForCode(root), true)
})

test('an impersonation in the console leaves the session of the application, and returns to the admin', async () => {
  const { jar, app, desk, ada, root } = await bothSignedIn()
  const eve = await t.signUp('Eve')
  const begun = await desk.post(`${AUTH}/admin/impersonate-user`, { userId: eve.id })
  assert.equal(begun.status, 200, begun.text)
  // An application without an impersonation clears the admin's token of its own jar only.
  assert.deepEqual([await app.whoAmI(), await desk.whoAmI()], [ada.email, eve.email])
  assert.equal(jar.has('service-auth.console.admin-session'), true)
  assert.equal((await desk.post(`${AUTH}/admin/stop-impersonating`)).status, 200)
  assert.deepEqual([await app.whoAmI(), await desk.whoAmI()], [ada.email, root.email])

  // By a code the application gets the session, and the console keeps its own.
  const { body } = await desk.post(`${AUTH}/admin/impersonate-user`, { userId: eve.id, handoff: true })
  assert.equal((await app.post(`${AUTH}/admin/exchange-handoff`, { code: body.code })).status, 200)
  assert.deepEqual([await app.whoAmI(), await desk.whoAmI()], [eve.email, root.email])
})

test('the sessions that a browser keeps for its users are those of the application', async () => {
  const { jar, app, desk, ada, root } = await bothSignedIn()
  const emailsOf = async (page: Page) =>
    (await page.get(`${AUTH}/multi-session/list-device-sessions`)).body.map(
      ({ user }: { user: { email: string } }) => user.email,
    )
  assert.deepEqual([await emailsOf(app), await emailsOf(desk)], [[ada.email], []])
  const sessionToken = String(jar.get(SESSION))
  const taken = await desk.post(`${AUTH}/multi-session/set-active`, { sessionToken })
  assert.deepEqual(refused(taken), [401, 'INVALID_SESSION_TOKEN'])
  assert.deepEqual([await app.whoAmI(), await desk.whoAmI()], [ada.email, root.email])
})

test('the cookie of the console counts from pages of the service only, and is set by no other', async () => {
  const { pageWith, root } = await bothSignedIn()
  for (const origin of [APP, 'https://evil.example', 'null']) {
    const code = origin === 'null' ? 'MISSING_OR_NULL_ORIGIN' : 'INVALID_ORIGIN'
    const page = pageWith({ ...OPERATE, origin })
    for (const answer of [
      await page.get(`${AUTH}/get-session`),
      await page.post(`${AUTH}/get-session`),
      await page.post(`${AUTH}/update-user`, { name: 'Other' }),
      await page.post(`${AUTH}/sign-in/email`, { email: root.email, password: PASSWORD }),
      await createBrowser()
        .pageWith({ ...OPERATE, origin })
        .post(`${AUTH}/sign-in/email`, { email: root.email, password: PASSWORD }),
    ]) {
      assert.deepEqual(refused(answer), [403, code], origin)
      assert.equal(answer.text.includes(root.email), false)
    }
  }
  const cookie = `${CONSOLE_COOKIE}=${root.token}`
  const bare = (more: Readonly<Record<string, string>>) =>
    t.anon.get(`${AUTH}/get-session`, { headers: { ...OPERATE, cookie, ...more } })
  assert.deepEqual(refused(await bare({})), [403, 'MISSING_OR_NULL_ORIGIN'])
  assert.equal((await bare({ 'sec-fetch-site': 'same-origin' })).status, 200)
  assert.deepEqual(refused(await bare({ 'sec-fetch-site': 'same-site' })), [403, 'INVALID_ORIGIN'])
  // A Bearer token is no cookie, and without the header the application's page goes on as before.
  const authorization = `Bearer ${root.token}`
  assert.equal((await bare({ origin: APP, authorization })).status, 200)
  assert.equal((await pageWith({ origin: APP }).get(`${AUTH}/get-session`)).status, 200)
})

test('a page that may not use the cookie neither extends its session nor gets its token', async () => {
  const { jar, desk, pageWith } = await bothSignedIn()
  t.advance(2 * DAY)
  for (const method of ['get', 'post'] as const) {
    const answer = await pageWith({ ...OPERATE, origin: APP })[method](`${AUTH}/get-session`)
    assert.deepEqual(refused(answer), [403, 'INVALID_ORIGIN'])
    assert.deepEqual([answer.headers.get('set-auth-token'), answer.headers.getSetCookie()], [null, []])
  }
  const own = await desk.get(`${AUTH}/get-session`)
  assert.equal(own.headers.get('set-auth-token'), jar.get(CONSOLE_COOKIE))
})

test('a page of another origin changes no cookie of the console, whatever token it sends', async () => {
  const { jar, pageWith } = await bothSignedIn()
  const eve = await t.signUp('Eve')
  const operating = jar.get(CONSOLE_COOKIE)
  const pageOf = (token: string) => pageWith({ ...OPERATE, origin: APP, authorization: `Bearer ${token}` })
  const { status, body, headers, text } = await pageOf(eve.token).post(`${AUTH}/reauthenticate`, {
    password: PASSWORD,
  })
  assert.deepEqual([status, headers.get('set-auth-token')], [200, body.token], text)
  assert.equal(jar.get(CONSOLE_COOKIE), operating)
  assert.equal((await pageOf(body.token).post(`${AUTH}/sign-out`)).status, 200)
  assert.equal(jar.get(CONSOLE_COOKIE), operating)
})

test('no other value of the header selects it', async () => {
  const { pageWith, ada } = await bothSignedIn()
  for (const value of ['0', 'true', ''])
    assert.equal(await pageWith({ 'x-service-session': value }).whoAmI(), ada.email, value)
})
