import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { eventually } from '#test/embedded.ts'
import { linkIn, PASSWORD, testService, type User } from '#test/harness.ts'
import { openBrowser, otherOrigin, type Visit, withoutBrowser } from './chromium.ts'

const NEW = 'another horse staple'
const DAY = 86_400_000

if (withoutBrowser !== false) test('the pages of mailed links in a browser', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const app = await otherOrigin((request, response) => {
    response.setHeader('content-type', 'text/html')
    // A page that makes the browser prefetch a link before the user clicks it.
    const next = new URL(request.url ?? '', 'http://app').searchParams.get('prefetch')
    response.end(
      next === null
        ? '<title>App</title><h1>App</h1>'
        : `<title>Mail</title><link rel="prefetch" href="${next}"><a href="${next}">open</a>`,
    )
  })
  // 127.0.0.1 is a different site from the service's localhost, not only a different origin.
  const t = await testService({ config: { auth: { trusted_origins: [app.origin] } } })
  const browser = await openBrowser()
  const own = t.service.kernel.publicUrl()
  const callbackURL = `${app.origin}/done?from=mail`

  const open = (visit: Visit, link: string) => visit.page.goto(`${own}${link}`)
  const press = (page: Page, name: string) => page.getByRole('button', { name }).click()

  async function lastLink(to: string): Promise<string> {
    const mails = await t.mails()
    return linkIn(mails.findLast((mail) => mail.includes(`To: ${to}`) && mail.includes('http')) ?? '')
  }

  async function verification(user: User): Promise<string> {
    await t.anon.post('/api/auth/send-verification-email', { email: user.email, callbackURL })
    return lastLink(user.email)
  }

  const isVerified = async ({ id }: User) =>
    (await t.service.kernel.db.selectFrom('user').select('emailVerified').where('id', '=', id).execute())[0]
      ?.emailVerified

  test('the button redirects to the application on another origin, without the token and without browser warnings', async () => {
    const ada = await t.signUp('Ada')
    const visit = await browser.visit()
    await open(visit, await verification(ada))
    assert.ok((await visit.page.textContent('main'))?.includes(ada.email))
    assert.equal(await isVerified(ada), false)

    await visit.page.getByLabel('Password', { exact: true }).fill('wrong password')
    await press(visit.page, 'Confirm address')
    await visit.page.getByRole('alert').waitFor()
    await visit.page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    const { length: before } = app.visited
    await press(visit.page, 'Confirm address')
    await visit.page.waitForURL(callbackURL)
    assert.equal(await isVerified(ada), true)
    assert.deepEqual(app.visited.slice(before), ['/done?from=mail without referrer'])
    // The browser reports the status of the page for the wrong password.
    assert.deepEqual(
      visit.complaints.filter((text) => !text.includes('400 (Bad Request)')),
      [],
    )
    const signIn = await t.anon.post('/api/auth/sign-in/email', { email: ada.email, password: PASSWORD })
    assert.equal(signIn.status, 200)
  })

  test('"I do not know the password" opens without scripts, and sets a new password', async () => {
    const ada = await t.signUp('Ada')
    const visit = await browser.visit({ javaScriptEnabled: false })
    await open(visit, await verification(ada))
    await visit.page.getByText('I do not know the password').click()
    await visit.page.getByLabel('New password').fill(NEW)
    await press(visit.page, 'Set password and confirm address')
    await visit.page.waitForURL(callbackURL)
    assert.deepEqual(visit.complaints, [])
    const signIn = await t.anon.post('/api/auth/sign-in/email', { email: ada.email, password: NEW })
    assert.equal(signIn.status, 200)
    assert.equal((await ada.get('/api/auth/get-session')).status, 401)
  })

  test('prefetching the link or opening it repeatedly does not consume it', async () => {
    const ada = await t.signUp('Ada')
    const link = await verification(ada)
    const visit = await browser.visit()
    const opened = () =>
      t.log.filter((line) => line.includes('GET /api/auth/confirm/verify-email 200')).length
    const before = opened()
    await visit.page.goto(`${app.origin}/mail?prefetch=${encodeURIComponent(`${own}${link}`)}`)
    // Cross-Origin-Resource-Policy keeps the prefetched page from the other site, which is told before the next page is opened.
    await eventually(() => opened() > before && visit.complaints.length > 0)
    for (let times = 0; times < 3; times++) await open(visit, link)
    assert.equal(await isVerified(ada), false)
    // Like a click in webmail: the navigation comes from another site.
    await visit.page.goto(`${app.origin}/mail?prefetch=${encodeURIComponent(`${own}${link}`)}`)
    await visit.page.getByText('open').click()
    await visit.page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await press(visit.page, 'Confirm address')
    await visit.page.waitForURL(callbackURL)
    assert.equal(await isVerified(ada), true)
    // The second time, the click may come before the prefetch.
    const prefetched = 'Failed to load resource: net::ERR_BLOCKED_BY_RESPONSE.NotSameOrigin'
    assert.deepEqual([...new Set(visit.complaints)], [prefetched])
  })

  test('a signed-in browser needs one click to confirm an address, change it, or delete the account', async () => {
    const ada = await t.signUp('Ada')
    const visit = await browser.visit()
    const cookie = { name: t.config.session.cookie_name, value: ada.token, url: own }
    await visit.page.context().addCookies([{ ...cookie, httpOnly: true, sameSite: 'Lax' }])
    await open(visit, await verification(ada))
    assert.equal(await visit.page.locator('input[type=password]').count(), 0)
    await press(visit.page, 'Confirm address')
    await visit.page.waitForURL(callbackURL)

    const newEmail = `new-${ada.email}`
    await ada.post('/api/auth/change-email', { newEmail, callbackURL })
    await open(visit, await lastLink(ada.email))
    await press(visit.page, 'Allow the change')
    await visit.page.waitForURL(callbackURL)
    await open(visit, await lastLink(newEmail))
    await press(visit.page, 'Change address')
    await visit.page.waitForURL(callbackURL)
    assert.equal((await ada.get('/api/auth/get-session')).body.user.email, newEmail)

    t.advance(DAY + 1)
    await ada.post('/api/auth/delete-user', { callbackURL: '/ping' })
    await open(visit, await lastLink(newEmail))
    await press(visit.page, 'Delete account')
    await visit.page.waitForURL(`${own}/ping`)
    assert.equal((await ada.get('/api/auth/get-session')).status, 401)
    assert.deepEqual(visit.complaints, [])
    const cookies = await visit.page.context().cookies(own)
    assert.ok(!cookies.some(({ name }) => name === cookie.name), 'the session cookie was not deleted')
  })

  test('without a callback, the reset link opens a page that sets the password', async () => {
    const ada = await t.signUp('Ada')
    await t.anon.post('/api/auth/forget-password', { email: ada.email })
    const visit = await browser.visit({ colorScheme: 'dark' })
    const link = await lastLink(ada.email)
    await open(visit, link)
    await visit.page.getByLabel('New password').fill(NEW)
    await press(visit.page, 'Set password')
    await visit.page.getByRole('heading', { name: 'Password changed' }).waitFor()
    assert.equal(
      (await t.anon.post('/api/auth/sign-in/email', { email: ada.email, password: NEW })).status,
      200,
    )
    assert.deepEqual(visit.complaints, [])
    await open(visit, link)
    await visit.page.getByRole('heading', { name: 'This link does not work' }).waitFor()
  })
}
