import assert from 'node:assert/strict'
import { test } from 'node:test'
import { askForCodes, poll } from '#test/devices.ts'
import {
  type Actor,
  type Answer,
  BROWSER,
  FORM,
  formIn,
  pressButton,
  testClock,
  testService,
  type User,
} from '#test/harness.ts'
import { impersonated, sessionIdOf } from '#test/permissions/impersonated.ts'

const clients = { tv: { name: 'TV <b>&' }, plain: {} }
const t = await testService({
  clock: testClock({ isStopped: true }),
  config: { auth: { device: { clients } } },
})
const own = await testService({
  config: { auth: { device: { clients, page_url: 'https://app.example.com/device?lang=en' } } },
})
const PAGE = '/api/auth/confirm/device'
const DAY = 86_400_000

/** A browser in which the user is signed in. */
const browserOf = ({ token }: User): Actor => {
  const headers = { ...BROWSER, cookie: `${t.config.session.cookie_name}=${token}` }
  const send: Actor['send'] = (method, path, ask = {}) =>
    t.anon.send(method, path, { ...ask, headers: { ...headers, ...ask.headers } })
  return {
    headers,
    send,
    get: (path, ask) => send('GET', path, ask),
    post: (path, body = {}, ask = {}) => send('POST', path, { body, ...ask }),
  }
}
const press = (who: Actor, page: Answer, decision: 'approve' | 'deny') =>
  pressButton(who, PAGE, page, { decision })

test('the address that a device shows leads a browser to a page for the code, and with it to the question', async () => {
  const ada = browserOf(await t.signUp('Ada'))
  const { body } = await t.anon.post('/api/auth/device/code', { client_id: 'tv' })
  const local = (url: string) => url.slice(new URL(url).origin.length)
  const shown = await t.anon.get(local(body.verification_uri), { headers: BROWSER })
  assert.deepEqual([shown.status, new URL(shown.headers.get('location') ?? '').pathname], [302, PAGE])
  const entry = await ada.get(PAGE)
  assert.equal(entry.status, 200)
  assert.match(entry.text, /<form method="get">[\s\S]*name="user_code"/)

  const complete = await t.anon.get(local(body.verification_uri_complete), { headers: BROWSER })
  const page = await ada.get(local(complete.headers.get('location') ?? ''))
  assert.equal(page.status, 200)
  assert.ok(page.text.includes(`<code>${body.user_code}</code>`), 'the code, to be compared with the device')
  assert.match(page.text, /TV &lt;b&gt;&amp; asks to be signed in to the account of ada-/)
  const policy = page.headers.get('content-security-policy') ?? ''
  assert.match(policy, /^default-src 'none'; style-src 'sha256-[\w+/]{43}='; form-action 'self';/)
  assert.match(policy, /frame-ancestors 'none'/)
  assert.equal(page.headers.get('referrer-policy'), 'same-origin')
  assert.doesNotMatch(page.text, /<script|style=|onclick/)
})

test('its buttons approve and refuse, once', async () => {
  const user = await t.signUp('Ada')
  const ada = browserOf(user)
  for (const [decision, title, outcome] of [
    ['approve', 'Device approved', 200],
    ['deny', 'Device refused', 'access_denied'],
  ] as const) {
    const asked = await askForCodes(t, 'tv')
    const page = await ada.get(`${PAGE}?user_code=${asked.userCode}`)
    const done = await press(ada, page, decision)
    assert.equal(done.status, 200, done.text)
    assert.match(done.text, new RegExp(title))
    const { status, body } = await poll(t, asked)
    assert.equal(status === 200 ? status : body.error, outcome)
    const again = await press(ada, page, 'approve')
    assert.equal(again.status, 400)
    assert.match(again.text, /The device was answered already/)
    const late = await ada.get(`${PAGE}?user_code=${asked.userCode}`)
    assert.match(late.text, /The device was answered already/)
  }
})

test('the device gets no session of another user than the one whom the page has shown', async () => {
  const [ada, root] = [browserOf(await t.signUp('Ada')), browserOf(await t.signUp('Root'))]
  const asked = await askForCodes(t, 'tv')
  const page = await ada.get(`${PAGE}?user_code=${asked.userCode}`)
  // Another tab of the same browser has made the session of Root current.
  const refused = await press(root, page, 'approve')
  assert.equal(refused.status, 409)
  assert.match(refused.text, /The session is of another user/)
  assert.equal((await poll(t, asked)).body.error, 'authorization_pending')
  assert.equal((await press(ada, page, 'approve')).status, 200)
})

test('a wrong or expired code is asked for again, and never shown', async () => {
  const ada = browserOf(await t.signUp('Ada'))
  const wrong = await ada.get(`${PAGE}?user_code=${encodeURIComponent('<b>"nothing')}`)
  assert.equal(wrong.status, 400)
  assert.match(wrong.text, /There is no such code/)
  assert.match(wrong.text, /<form method="get">/)
  assert.doesNotMatch(wrong.text, /nothing/)
  const asked = await askForCodes(t, 'tv')
  t.advance(600_000)
  assert.match((await ada.get(`${PAGE}?user_code=${asked.userCode}`)).text, /The code has expired/)
})

test('without a session, with an old one or an impersonated one the page tells what to do, and learns nothing', async () => {
  const user = await t.signUp('Ada')
  const asked = await askForCodes(t, 'tv')
  const path = `${PAGE}?user_code=${asked.userCode}`
  const stranger = await t.anon.get(path, { headers: BROWSER })
  assert.equal(stranger.status, 401)
  assert.match(stranger.text, /Sign in to the application in this browser/)
  assert.doesNotMatch(stranger.text, /TV|<form/)
  assert.equal((await t.anon.get(path)).body.code, 'UNAUTHORIZED', 'a program gets JSON')

  t.advance(DAY + 1)
  const fresh = await askForCodes(t, 'tv')
  const ada = browserOf(user)
  const stale = await press(ada, await ada.get(`${PAGE}?user_code=${fresh.userCode}`), 'approve')
  assert.equal(stale.status, 403)
  assert.match(stale.text, /You signed in some time ago/)
  assert.equal((await poll(t, fresh)).body.error, 'authorization_pending')

  const root = await t.signUp('Root')
  await t.service.kernel.db.updateTable('user').set({ role: 'admin' }).where('id', '=', root.id).execute()
  const parentId = await sessionIdOf(root)
  const acting = await impersonated(t, root, user, { parentId })
  const refused = await acting.get(`${PAGE}?user_code=${fresh.userCode}`, { headers: BROWSER })
  assert.deepEqual([refused.status, /An impersonated session may not/.test(refused.text)], [403, true])
})

test('the button of a foreign page, and of one that hides its origin, is refused', async () => {
  const ada = browserOf(await t.signUp('Ada'))
  const asked = await askForCodes(t, 'tv')
  const raw = formIn((await ada.get(`${PAGE}?user_code=${asked.userCode}`)).text, { decision: 'approve' })
  for (const origin of ['https://evil.example', 'null'])
    assert.equal((await ada.send('POST', PAGE, { raw, headers: { ...FORM, origin } })).status, 403)
  for (const origin of ['https://evil.example', 'null']) {
    const cross = { headers: { origin } }
    const { status } = await ada.post('/api/auth/device/approve', { userCode: asked.userCode }, cross)
    assert.equal(status, 403)
  }
  assert.equal((await poll(t, asked)).body.error, 'authorization_pending')
  const { origin } = new URL(t.service.kernel.publicUrl())
  assert.equal((await ada.send('POST', PAGE, { raw, headers: { ...FORM, origin } })).status, 200)
})

test('a page of the application takes the place of ours in what devices are told', async () => {
  const { body } = await own.anon.post('/api/auth/device/code', { client_id: 'plain' })
  assert.equal(body.verification_uri, 'https://app.example.com/device?lang=en')
  assert.equal(body.verification_uri_complete, `${body.verification_uri}&user_code=${body.user_code}`)
  const ada = await own.signUp('Ada')
  const { body: shown } = await ada.get(`/api/auth/device?user_code=${body.user_code}`)
  assert.deepEqual([shown.client_name, shown.scope], ['plain', ''])
})
