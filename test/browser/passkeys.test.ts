import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, test } from 'node:test'
import type { CDPSession, Page } from 'playwright-core'
import { freePort } from '#test/free-port.ts'
import { PASSWORD, testService } from '#test/harness.ts'
import { openBrowser, withoutBrowser } from './chromium.ts'

if (withoutBrowser !== false) test('the example for passkeys in a browser', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const [port, otherPort] = [await freePort(), await freePort()]
  const [app, other] = [`http://localhost:${port}`, `http://localhost:${otherPort}`]
  const t = await testService({
    config: {
      auth: {
        trusted_origins: [app, other],
        passkey: { origins: [app], require_user_verification: true },
      },
    },
  })
  for (const at of [port, otherPort]) await serveExample(at, t.service.kernel.publicUrl())
  const browser = await openBrowser()

  /** A new browser with an authenticator that is built in, and the page of the example with a new account. */
  async function newVisitor() {
    const { page } = await browser.visit()
    const cdp = await page.context().newCDPSession(page)
    await cdp.send('WebAuthn.enable')
    const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        ...{ protocol: 'ctap2', transport: 'internal', automaticPresenceSimulation: true },
        ...{ hasResidentKey: true, hasUserVerification: true, isUserVerified: true },
      },
    })
    await page.goto(app)
    const email = `ada-${++visitors}@example.com`
    await page.getByPlaceholder('Name', { exact: true }).fill('Ada')
    await page.getByPlaceholder('Email').fill(email)
    await page.getByPlaceholder('Password').fill(PASSWORD)
    await press(page, 'Sign up', 'Signed up')
    return { page, cdp, authenticatorId, email }
  }
  let visitors = 0

  /** The same with a passkey, signed out. */
  async function newPasskey() {
    const visitor = await newVisitor()
    await addPasskey(visitor.page, 'Laptop')
    await press(visitor.page, 'Sign out', 'Signed out')
    return visitor
  }

  const signIn = (page: Page, outcome: string) => press(page, 'Sign in with a passkey', outcome)

  test('a user registers a passkey once, signs in with it, renames and deletes it', async () => {
    const { page, cdp, authenticatorId } = await newVisitor()
    await addPasskey(page, 'Laptop')
    await page.getByLabel('Name of this device').fill('Again')
    // Because of excludeCredentials the browser refuses.
    await press(page, 'Add a passkey', /excluded|registered|already/i)
    assert.equal(await page.getByLabel('Name of the passkey').count(), 1)
    await press(page, 'Sign out', 'Signed out')
    assert.deepEqual(
      (await credentialsOf(cdp, authenticatorId)).map(({ rpId, isResidentCredential }) => [
        rpId,
        isResidentCredential,
      ]),
      [['localhost', true]],
    )
    await signIn(page, 'Signed in')
    assert.equal(await page.locator('#user').textContent(), 'Ada')
    const name = page.getByLabel('Name of the passkey')
    assert.equal(await name.inputValue(), 'Laptop')
    await name.fill('Old laptop')
    await press(page, 'Rename', 'Renamed')
    await page.reload()
    assert.equal(await name.inputValue(), 'Old laptop')
    await press(page, 'Delete', 'Deleted')
    assert.equal(await name.count(), 0)
    await press(page, 'Sign out', 'Signed out')
    await signIn(page, 'PASSKEY_NOT_FOUND')
    assert.ok(await page.locator('#signed-in').isHidden())
  })

  test('a wrong signature, a missing user verification, another origin and a copied authenticator do not sign in', async () => {
    const { page, cdp, authenticatorId } = await newPasskey()
    const [copy = assert.fail()] = await credentialsOf(cdp, authenticatorId)
    const refused = async () => {
      await signIn(page, 'AUTHENTICATION_FAILED')
      assert.ok(await page.locator('#signed-in').isHidden())
    }
    for (const bit of ['isBogusSignature', 'isBadUV', 'isBadUP']) {
      await cdp.send('WebAuthn.setResponseOverrideBits', { authenticatorId, [bit]: true })
      await refused()
      await cdp.send('WebAuthn.setResponseOverrideBits', { authenticatorId, [bit]: false })
    }
    // A page of the same host that the service trusts, but not for passkeys.
    await page.goto(other)
    await refused()
    assert.ok(t.log.some((line) => line.includes('passkey_assertion_refused') && line.includes(other)))
    await page.goto(app)
    await signIn(page, 'Signed in')
    await press(page, 'Sign out', 'Signed out')
    // A copy of the authenticator, made before: its counter is behind.
    await cdp.send('WebAuthn.clearCredentials', { authenticatorId })
    await cdp.send('WebAuthn.addCredential', { authenticatorId, credential: copy })
    await refused()
    assert.ok(t.log.some((line) => line.includes('passkey_counter_not_higher')))
  })
}

const addPasskey = async (page: Page, name: string): Promise<void> => {
  await page.getByLabel('Name of this device').fill(name)
  await press(page, 'Add a passkey', 'Added')
}

/** Presses a button and waits until the page shows the outcome. */
async function press(page: Page, name: string, outcome: string | RegExp): Promise<void> {
  await page.getByRole('button', { name, exact: true }).click()
  const status = page.getByRole('status')
  await status.filter({ hasText: /^(?!…$)./ }).waitFor()
  const text = (await status.textContent()) ?? ''
  assert.ok(typeof outcome === 'string' ? text.startsWith(outcome) : outcome.test(text), text)
}

const credentialsOf = async (cdp: CDPSession, authenticatorId: string) =>
  (await cdp.send('WebAuthn.getCredentials', { authenticatorId })).credentials

/** Runs the server of the example, as its README says. */
async function serveExample(port: number, service: string): Promise<void> {
  const server = spawn(process.execPath, ['examples/passkeys/serve.mjs'], {
    cwd: new URL('../..', import.meta.url),
    env: { ...process.env, PORT: String(port), GATEHOUSE_URL: service },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  after(() => server.kill())
  await once(server.stdout, 'data')
}
