import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { CONSOLE_COOKIE } from '#kernel/http/header-names.ts'
import { withoutBrowser } from '#test/browser/chromium.ts'
import { expectAccessible, openConsole, userOf } from '#test/console.ts'
import { startOpenidProvider } from '#test/identity-provider/openid-provider.ts'
import { oidcSettings, person, register, TO_LOOPBACK } from '#test/identity-provider/visits.ts'
import { ageProof } from '#test/operators.ts'
import { codeOf, insertFactor } from '#test/second-factor.ts'

if (withoutBrowser !== false) test('the ways into the console in a browser', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const idp = await startOpenidProvider()
  const { t, at, visit, enter } = await openConsole({
    config: { outbound: TO_LOOPBACK, auth: { social: { providers: { acme: oidcSettings(idp) } } } },
  })
  register(t, idp, ['acme'])
  const { db, coherence } = t.service.kernel

  const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
  const home = (page: Page) => page.getByRole('heading', { name: 'Home', level: 1 }).waitFor()
  const cookiesOf = async (page: Page) =>
    (await page.context().cookies(at))
      .map(({ name }) => name)
      .filter((name) => name.includes('session') || name === CONSOLE_COOKIE)
  const makeAdmin = async (email = '') => {
    const { id } = await db
      .updateTable('user')
      .set({ role: 'admin' })
      .where('email', '=', email)
      .returning('id')
      .executeTakeFirstOrThrow()
    await coherence.settle()
    return id
  }

  test('one signs in by a provider where one wanted to go, into the session of the console alone', async () => {
    const root = person('Root')
    idp.visitor = root
    const { page } = await visit()
    await page.goto(`${at}/users?sort=name`)
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await expectAccessible(page, 'the door')
    await press(page, 'Continue with Acme')
    await page.getByRole('heading', { name: 'Nothing here' }).waitFor()
    await makeAdmin(root.email)
    await page.reload()
    await page.getByRole('cell', { name: root.email ?? '' }).waitFor()
    assert.equal(page.url(), `${at}/users?sort=name`)
    assert.deepEqual(await cookiesOf(page), [CONSOLE_COOKIE])

    const id = await makeAdmin(root.email)
    const secret = await insertFactor(t, { id })
    await press(page, 'Sign out')
    await press(page, 'Continue with Acme')
    await page.getByText('This account has a second factor.').waitFor()
    await page.getByLabel('Code', { exact: true }).fill(codeOf(t, secret))
    await press(page, 'Sign in')
    await page.getByRole('cell', { name: root.email ?? '' }).waitFor()
    assert.equal(page.url(), `${at}/users?sort=name`)
  })

  test('who declines at the provider is told so, and an address says nothing but a code', async () => {
    idp.visitor = undefined
    const { page } = await visit()
    await page.goto(at)
    await press(page, 'Continue with Acme')
    await page.getByText('The visit to the provider did not succeed.').waitFor()
    await page.getByText('access_denied').waitFor()
    await press(page, 'Dismiss')
    await page.getByRole('alert').waitFor({ state: 'detached' })
    assert.equal(page.url(), at)
    await page.goto(`${at}?error=${encodeURIComponent('<b>Call 0900 1234</b>')}`)
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    assert.equal(await page.getByRole('alert').count(), 0)
  })

  test('a proof is shown by the provider, which leads back to the same place', async () => {
    const eve = person('Eve')
    idp.visitor = eve
    const { page } = await visit()
    await page.goto(at)
    await press(page, 'Continue with Acme')
    await home(page)
    const id = await makeAdmin(eve.email)
    await page.goto(`${at}/users/${id}`)
    // The clock of the provider cannot be turned.
    const session = db.selectFrom('session').select('id as sessionId').where('userId', '=', id)
    await ageProof(t, await session.executeTakeFirstOrThrow(), 11)
    const setPassword = async () => {
      await press(page, 'Set password')
      await page.getByLabel('New password').fill('another horse staple')
      await page.getByRole('dialog').getByRole('button', { name: 'Set password' }).click()
    }
    await setPassword()
    const proof = page.getByRole('dialog', { name: 'Show that it is you' })
    await proof.getByText('The page of Acme takes the place of this one').waitFor()
    await proof.getByRole('button', { name: 'Go on' }).click()
    await proof.waitFor({ state: 'detached' })
    await page.getByRole('heading', { name: 'Eve', level: 1 }).waitFor()
    await setPassword()
    await page
      .getByText(/has a new password|session has ended/)
      .first()
      .waitFor()
  })

  test('one signs in by a passkey, and shows a proof by it', async () => {
    const ada = await userOf(t, 'Ada', 'admin')
    const { page } = await enter(ada)
    const cdp = await page.context().newCDPSession(page)
    await cdp.send('WebAuthn.enable')
    const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        ...{ protocol: 'ctap2', transport: 'internal', automaticPresenceSimulation: true },
        ...{ hasResidentKey: true, hasUserVerification: true, isUserVerified: true },
      },
    })
    await home(page)
    assert.equal(await page.evaluate(REGISTER), 200)
    await press(page, 'Sign out')
    await press(page, 'Use a passkey')
    await home(page)
    await page.getByText(ada.email).waitFor()
    assert.deepEqual(await cookiesOf(page), [CONSOLE_COOKIE])

    // An act that a passkey is enough for: those of the console demand the password where there is one.
    const bob = await userOf(t, 'Bob', 'user')
    const json = { code: 'SESSION_NOT_FRESH', message: 'Show it', details: { accepts: ['passkey'] } }
    await page.route('**/admin/unban-user', (route) => route.fulfill({ status: 403, json }), { times: 1 })
    await db.updateTable('user').set({ banned: true }).where('id', '=', bob.id).execute()
    await coherence.settle()
    await page.goto(`${at}/users/${bob.id}`)
    await press(page, 'Lift the ban')
    const proof = page.getByRole('dialog', { name: 'Show that it is you' })
    await proof.getByRole('button', { name: 'Go on' }).waitFor()
    await expectAccessible(page, 'the proof')
    await proof.getByRole('button', { name: 'Go on' }).click()
    await page.getByText('Bob may sign in again').waitFor()
    const shown = db.selectFrom('auditEvent').select('actorId').where('action', '=', 'user.reauthenticated')
    assert.ok((await shown.execute()).some(({ actorId }) => actorId === ada.id))

    await press(page, 'Sign out')
    await cdp.send('WebAuthn.clearCredentials', { authenticatorId })
    await press(page, 'Use a passkey')
    await page.getByText('No passkey was used.').waitFor()
  })
}

/** As a page of the account does. */
const REGISTER = `(async () => {
  const headers = { 'x-service-session': '1', 'content-type': 'application/json' }
  const { challengeId, ...options } = await (await fetch('/api/auth/passkey/generate-register-options', { headers })).json()
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options)
  const response = (await navigator.credentials.create({ publicKey })).toJSON()
  const body = JSON.stringify({ response, challengeId, name: 'Laptop' })
  return (await fetch('/api/auth/passkey/verify-registration', { method: 'POST', headers, body })).status
})()`
