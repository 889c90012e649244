import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Actor,
  BROWSER,
  confirm,
  endpointOf,
  FORM,
  formIn,
  linkIn,
  PASSWORD,
  testService,
  type User,
} from '#test/harness.ts'

const APP = 'https://app.example.com'
const t = await testService({ config: { auth: { trusted_origins: [APP] } } })
const { kernel } = t.service
const NEW = 'another horse staple'
const DAY = 86_400_000

type Flow = {
  /** Asks for the mail and returns its link. */
  readonly begin: (user: User, callbackURL?: string) => Promise<string>
  readonly filled?: Readonly<Record<string, string>>
  /** Has the button acted? */
  readonly isDone: (user: User) => Promise<boolean>
  readonly code: string
}

const userRow = (id: string) =>
  kernel.db.selectFrom('user').selectAll().where('id', '=', id).executeTakeFirst()

async function prove({ id }: User): Promise<void> {
  const proof = { emailVerified: true, emailProvenAt: new Date() }
  await kernel.db.updateTable('user').set(proof).where('id', '=', id).execute()
  await kernel.coherence.settle()
}

async function lastLink(to: string): Promise<string> {
  const mails = await t.mails()
  return linkIn(mails.findLast((mail) => mail.includes(`To: ${to}`) && mail.includes('http')) ?? '')
}

/** Every flow that a mail begins. */
const FLOWS: Readonly<Record<string, Flow>> = {
  'verify-email': {
    async begin(user, callbackURL) {
      await t.anon.post('/api/auth/send-verification-email', { email: user.email, callbackURL })
      return lastLink(user.email)
    },
    filled: { password: PASSWORD },
    isDone: async ({ id }) => (await userRow(id))?.emailVerified === true,
    code: 'INVALID_TOKEN',
  },
  'change-email, the old address': {
    async begin(user, callbackURL) {
      await prove(user)
      await user.post('/api/auth/change-email', { newEmail: `new-${user.email}`, callbackURL })
      return lastLink(user.email)
    },
    isDone: async ({ email }) => (await t.mails()).some((mail) => mail.includes(`To: new-${email}`)),
    code: 'INVALID_TOKEN',
  },
  'change-email, the new address': {
    async begin(user, callbackURL) {
      await user.post('/api/auth/change-email', { newEmail: `new-${user.email}`, callbackURL })
      return lastLink(`new-${user.email}`)
    },
    filled: { password: PASSWORD },
    isDone: async ({ id, email }) => (await userRow(id))?.email === `new-${email}`,
    code: 'INVALID_TOKEN',
  },
  'delete-user': {
    async begin(user, callbackURL) {
      t.advance(DAY + 1)
      await user.post('/api/auth/delete-user', { callbackURL })
      return lastLink(user.email)
    },
    filled: { password: PASSWORD },
    isDone: async ({ id }) => (await userRow(id)) === undefined,
    code: 'INVALID_TOKEN',
  },
  'reset-password': {
    async begin(user) {
      await t.anon.post('/api/auth/forget-password', { email: user.email })
      const link = await lastLink(user.email)
      const opened = await t.anon.get(link, { headers: BROWSER })
      assert.equal(opened.status, 302)
      const page = new URL(opened.headers.get('location') ?? '')
      assert.equal(page.pathname, '/api/auth/confirm/reset-password')
      return `${page.pathname}${page.search}`
    },
    filled: { newPassword: NEW },
    isDone: async ({ email }) =>
      (await t.anon.post('/api/auth/sign-in/email', { email, password: NEW })).status === 200,
    code: 'INVALID_TOKEN',
  },
}

const PREFETCH = { 'sec-purpose': 'prefetch;prerender', purpose: 'prefetch', 'x-moz': 'prefetch' }

for (const [name, { begin, filled = {}, isDone, code }] of Object.entries(FLOWS)) {
  test(`${name}: GET and HEAD of the mailed link consume nothing; the button does, once`, async () => {
    const ada = await t.signUp('Ada')
    const link = await begin(ada)
    const cookie = `${t.config.session.cookie_name}=${ada.token}`
    const before = await kernel.db
      .selectFrom('verification')
      .selectAll()
      .where('userId', '=', ada.id)
      .execute()
    assert.ok(before.length > 0)
    for (const headers of [{}, BROWSER, PREFETCH, { ...BROWSER, ...PREFETCH }, { ...BROWSER, cookie }]) {
      for (const method of ['GET', 'HEAD', 'GET']) {
        const opened = await t.anon.send(method, link, { headers })
        assert.ok([200, 302].includes(opened.status), `${method} ${opened.status}`)
        assert.equal(opened.headers.get('set-cookie'), null)
      }
    }
    // HEAD of the endpoint that acts does nothing either.
    const headers = { cookie }
    assert.equal((await t.anon.send('HEAD', endpointOf(link), { headers })).status, 200)
    const after = await kernel.db
      .selectFrom('verification')
      .selectAll()
      .where('userId', '=', ada.id)
      .execute()
    assert.deepEqual(after, before)
    assert.deepEqual(await t.mails(), [])

    const pressed = await confirm(t.anon, link, filled)
    assert.equal(pressed.status, 200, pressed.text)
    assert.match(pressed.headers.get('content-type') ?? '', /^text\/html/)
    assert.ok(await isDone(ada))
    await t.mails()
    const page = await t.anon.get(link, { headers: BROWSER })
    assert.match(page.text, /This link does not work/)
    assert.match(page.text, /Ask for/)
    assert.ok(page.status >= 400 && page.status < 500)
    const program = await t.anon.get(link)
    assert.equal(program.body?.code, code, 'a program gets JSON')
  })

  test(`${name}: the page names the address, leaks no token, and can be left by its form only`, async () => {
    const ada = await t.signUp('Ada')
    const link = await begin(ada)
    const { headers, text, status } = await t.anon.get(link, { headers: BROWSER })
    assert.equal(status, 200)
    assert.ok(text.includes(ada.email))
    assert.equal(headers.get('referrer-policy'), 'same-origin')
    assert.equal(headers.get('cache-control'), 'no-store')
    const policy = headers.get('content-security-policy') ?? ''
    assert.match(policy, /^default-src 'none'; style-src 'sha256-[\w+/]{43}='; form-action 'self';/)
    assert.doesNotMatch(policy, /unsafe|script/)
    assert.doesNotMatch(text, /<script|style=|onclick/)
  })

  test(`${name}: an expired link says so`, async () => {
    const ada = await t.signUp('Ada')
    const link = await begin(ada)
    t.advance(DAY + 1)
    const page = await t.anon.get(link, { headers: BROWSER })
    assert.match(page.text, /This link has expired/)
    const pressed = await t.anon.post(link.split('?')[0] ?? '', undefined, {
      raw: new URLSearchParams({
        token: new URL(link, t.url).searchParams.get('token') ?? '',
        ...filled,
      }).toString(),
      headers: { ...BROWSER, ...FORM },
    })
    assert.match(pressed.text, /This link has expired/)
    assert.ok(!(await isDone(ada)))
    await t.mails()
  })

  if (name === 'reset-password') continue
  test(`${name}: the button redirects to the callback, and the page allows that`, async () => {
    for (const callbackURL of ['/done?from=mail', `${APP}/done?a=1&b=2`]) {
      const ada = await t.signUp('Ada')
      const link = await begin(ada, callbackURL)
      const page = await t.anon.get(link, { headers: BROWSER })
      const policy = page.headers.get('content-security-policy') ?? ''
      assert.ok(policy.includes(`form-action 'self'${callbackURL.startsWith('/') ? '' : ` ${APP}`};`), policy)
      const pressed = await confirm(t.anon, link, filled)
      assert.deepEqual([pressed.status, pressed.headers.get('location')], [303, callbackURL])
      assert.ok(await isDone(ada))
      await t.mails()
    }
  })
}

test('a page takes no callback of a foreign origin', async () => {
  const ada = await t.signUp('Ada')
  const link = await FLOWS['verify-email']?.begin(ada)
  const page = await t.anon.get(`${link}&callbackURL=https%3A%2F%2Fevil.example`, { headers: BROWSER })
  assert.equal(page.status, 403)
  assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
  assert.doesNotMatch(page.text, /evil/)
  const good = await t.anon.get(link ?? '', { headers: BROWSER })
  const raw = `${formIn(good.text)}&callbackURL=%2F%2Fevil.example`
  const sent = { raw, headers: { ...BROWSER, ...FORM } }
  const pressed = await t.anon.send('POST', '/api/auth/confirm/verify-email', sent)
  assert.deepEqual([pressed.status, pressed.headers.get('location')], [403, null])
  assert.equal((await userRow(ada.id))?.emailVerified, false)
})

test('the button of a foreign page, and of one that hides its origin, is refused', async () => {
  const ada = await t.signUp('Ada')
  const link = (await FLOWS['verify-email']?.begin(ada)) ?? ''
  const page = await ada.get(link, { headers: BROWSER })
  const press = (origin: string) => {
    const cookie = `${t.config.session.cookie_name}=${ada.token}`
    const headers = { ...BROWSER, ...FORM, origin, cookie }
    return t.anon.send('POST', '/api/auth/confirm/verify-email', { raw: formIn(page.text), headers })
  }
  assert.equal((await press('https://evil.example')).status, 403)
  assert.equal((await press('null')).status, 403)
  assert.equal((await userRow(ada.id))?.emailVerified, false)
  assert.equal((await press(new URL(kernel.publicUrl()).origin)).status, 200)
  assert.equal((await userRow(ada.id))?.emailVerified, true)
})

test('the deletion asks for the password without a session of that user', async () => {
  const ada = await t.signUp('Ada')
  const bob = await t.signUp('Bob')
  const link = (await FLOWS['delete-user']?.begin(ada)) ?? ''
  const page = (actor: Actor) => actor.get(link, { headers: BROWSER })
  assert.match((await page(bob)).text, /You are not signed in here/)
  assert.doesNotMatch((await page(ada)).text, /type="password"/)

  const wrong = await confirm(bob, link, { password: 'wrong password' })
  assert.equal(wrong.status, 400)
  assert.match(wrong.text, /The password is wrong/)
  assert.ok(await userRow(ada.id))
  const pressed = await confirm(ada, link)
  assert.match(pressed.text, /Account deleted/)
  assert.equal(await userRow(ada.id), undefined)
  assert.match(pressed.headers.get('set-cookie') ?? '', /session-token=;/)
  assert.ok(await userRow(bob.id))
})

test('a password that has to be changed first deletes nothing, and a link to change it is mailed', async () => {
  const ada = await t.signUp('Ada')
  const link = (await FLOWS['delete-user']?.begin(ada)) ?? ''
  await kernel.db
    .updateTable('account')
    .set({ mustChangePassword: true })
    .where('userId', '=', ada.id)
    .execute()
  const pressed = await confirm(t.anon, link, { password: PASSWORD })
  assert.equal(pressed.status, 403)
  assert.ok(await userRow(ada.id))
  assert.match((await t.mails())[0] ?? '', /Subject: Choose a new password/)
})

test('without a callback a reset link answers a browser with the page, a program with JSON', async () => {
  const ada = await t.signUp('Ada')
  await t.anon.post('/api/auth/forget-password', { email: ada.email })
  const link = await lastLink(ada.email)
  assert.match((await t.anon.get(link)).body.token, /^[\w-]{43}$/)
  const opened = await t.anon.get('/api/auth/reset-password/nothing', { headers: BROWSER })
  const page = await t.anon.get(opened.headers.get('location')?.replace(/^.*?(?=\/api)/, '') ?? '', {
    headers: BROWSER,
  })
  assert.match(page.text, /This link does not work/)
})

test('a link of one flow opens no other page', async () => {
  const ada = await t.signUp('Ada')
  const link = (await FLOWS['verify-email']?.begin(ada)) ?? ''
  for (const flow of ['change-email', 'delete-user', 'reset-password']) {
    const other = link.replace('confirm/verify-email', `confirm/${flow}`)
    assert.match((await ada.get(other, { headers: BROWSER })).text, /This link does not work/)
  }
  assert.equal((await ada.get('/api/auth/confirm/other?token=x', { headers: BROWSER })).status, 404)
  assert.equal((await ada.get(endpointOf(link))).status, 200)
})

test('no text of a link or an account becomes HTML of a page', async () => {
  const ada = await t.signUp('Ada')
  const odd = `o'<b>&${ada.email.replace('@', '-odd@')}`.replace('<b>', '')
  await ada.post('/api/auth/change-email', { newEmail: odd, callbackURL: '/done?<b>"x"' })
  await ada.post('/api/auth/change-email', { newEmail: odd, callbackURL: '/done?%3Cb%3E%22x%22&y=%27' })
  const page = await t.anon.get(await lastLink(odd), { headers: BROWSER })
  assert.match(page.text, /o&#39;&amp;ada/)
  assert.doesNotMatch(page.text, /<b>|value="[^"]*'/)
})

test('a form that is too large, malformed or of another content type is refused with its own code', async () => {
  const post = (raw: string, type = FORM['content-type']) =>
    t.anon.send('POST', '/api/auth/confirm/verify-email', { raw, headers: { 'content-type': type } })
  assert.equal((await post(`token=${'a'.repeat(20_000)}`)).body.code, 'PAYLOAD_TOO_LARGE')
  assert.equal((await post('token=%00')).body.code, 'INVALID_TEXT')
  assert.equal((await post('__proto__=x')).body.code, 'INVALID_TEXT')
  assert.equal((await post('')).body.code, 'INVALID_TOKEN')
  assert.equal((await post('<a/>', 'text/xml')).body.code, 'UNSUPPORTED_MEDIA_TYPE')
})
