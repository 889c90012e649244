import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Page } from 'playwright-core'
import { openBrowser, withoutBrowser } from '#test/browser/chromium.ts'
import {
  complaintsOf,
  expectAccessible,
  expectNoOverflow,
  openConsole,
  signIn,
  userOf,
} from '#test/console.ts'
import { actor, PASSWORD } from '#test/harness.ts'
import { createSecuredClient } from '#test/secured-client.ts'
import { createAdmin, createTemporaryHome, startProgram } from './program.ts'

const ROOT = 'root@example.com'
const ADA = 'ada@example.com'

if (withoutBrowser !== false) test('the first steps in the console', { skip: withoutBrowser })
else await tests()

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const agree = (page: Page, name: string) =>
  page.getByRole('dialog').getByRole('button', { name, exact: true }).click()
const openScreen = (page: Page, name: string) =>
  page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name, exact: true }).click()
const openTab = (page: Page, name: string) =>
  page
    .getByRole('navigation', { name: 'Views of the table' })
    .getByRole('link', { name, exact: true })
    .click()

async function tests(): Promise<void> {
  test('from an empty folder to rows, a policy, a user, a key and an event that is received, in the browser alone', async (t) => {
    const home = await createTemporaryHome()
    t.after(() => home.remove())
    const program = await startProgram(home.folder)
    t.after(() => program.end('SIGTERM'))
    await createAdmin(home.folder, { email: ROOT, password: PASSWORD })
    const visit = await (await openBrowser()).visit()
    const { page } = visit
    await page.goto(program.url.replace('127.0.0.1', 'localhost'))
    await signIn(page, { email: ROOT })

    await makeTable(page)
    await insertRow(page, 'of nobody')
    await openTab(page, 'Policies')
    await press(page, 'Switch it on')
    await agree(page, 'Switch it on')
    await press(page, 'Add policy')
    await agree(page, 'Add the policy')
    await page.getByText('row-level security is on', { exact: true }).waitFor()
    await makeUser(page)
    const apikey = await makeKey(page)
    await makeWebhook(page)

    const anon = actor(program.url)
    const { body } = await anon.post('/api/auth/sign-in/email', { email: ADA, password: PASSWORD })
    const ada = actor(program.url, {
      ...{ apikey, 'x-service-client': 'default' },
      'x-service-auth-session-token': body.token,
    })
    const inserted = await ada.send('PUT', '/gateway/insert', {
      body: { table_name: 'note', insert_body: { text: 'of ada' } },
    })
    assert.equal(inserted.status, 200, inserted.text)
    const seen = await ada.post('/gateway/fetch', { table_name: 'note', columns: ['text'] })
    assert.deepEqual(seen.body.data, [{ text: 'of ada' }])

    await page.getByRole('link', { name: 'what it has received' }).click()
    const event = page.getByRole('link', { name: 'gateway_insert' })
    while ((await event.count()) === 0) await press(page, 'Read again')
    await event.click()
    await page.getByText('verified', { exact: true }).waitFor()
    const sent = page.getByRole('region', { name: 'Body of the request' })
    assert.match((await sent.textContent()) ?? '', /"text": "of ada"/)
    assert.deepEqual(complaintsOf(visit), [])
  })

  async function makeTable(page: Page): Promise<void> {
    await openScreen(page, 'Data')
    await page.getByRole('link', { name: 'New table' }).click()
    await page.getByLabel('Table', { exact: true }).fill('note')
    await page.getByLabel('Name', { exact: true }).fill('text')
    await press(page, 'Another column')
    await page.getByLabel('Name', { exact: true }).last().fill('user_id')
    await page.getByLabel('Type', { exact: true }).last().fill('uuid')
    await press(page, 'Create table')
    await page.getByRole('heading', { name: 'note', level: 1 }).waitFor()
  }

  async function insertRow(page: Page, text: string): Promise<void> {
    await openTab(page, 'Rows')
    await press(page, 'Insert row')
    await page.getByRole('dialog').getByLabel('text').first().fill(text)
    await agree(page, 'Insert')
    await page.getByRole('gridcell', { name: text }).waitFor()
  }

  async function makeUser(page: Page): Promise<void> {
    await openScreen(page, 'Users')
    await press(page, 'New user')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('Ada')
    await dialog.getByLabel('Email').fill(ADA)
    await dialog.getByLabel('Password').fill(PASSWORD)
    await agree(page, 'Create')
    await page.getByRole('heading', { name: 'Ada', level: 1 }).waitFor()
  }

  async function makeKey(page: Page): Promise<string> {
    await openScreen(page, 'Keys')
    await press(page, 'New key')
    await page.getByLabel('Name', { exact: true }).fill('pages')
    await page.getByLabel('Table', { exact: true }).fill('note')
    for (const action of ['write', 'delete']) await page.getByLabel(action, { exact: true }).check()
    await press(page, 'Add')
    await press(page, 'Create the key')
    return page.getByRole('textbox', { name: 'Secret' }).inputValue()
  }

  async function makeWebhook(page: Page): Promise<void> {
    await openScreen(page, 'Webhooks')
    await press(page, 'New webhook')
    await press(page, 'Use the test receiver')
    await page.getByLabel('Rows inserted').check()
    await press(page, 'Create')
    await page.getByRole('textbox', { name: 'Secret' }).waitFor()
  }

  test('row-level security of the client is switched on by keyboard, said beforehand, and by those who may', async () => {
    const secured = await createSecuredClient()
    const roles = { reader: { gateway: { default: ['management.*', 'gateway.read'] } } }
    const { t, at, root, enter, trailOf } = await openConsole({
      builtIn: secured.builtIn,
      config: { auth: { admin: { roles } } },
    })
    after(async () => {
      await t.stop()
      await secured.drop()
    })
    await secured.sql('create table todo (id int primary key, user_id uuid)')
    const policies = `${at}/data?client=default&table=todo&view=policies`
    const { page } = await enter(root, '/data?client=default&table=todo&view=policies')
    const button = page.getByRole('button', { name: 'Switch it on', exact: true })
    await button.waitFor()
    await expectAccessible(page, 'a client without row-level security')
    await page.setViewportSize({ width: 360, height: 740 })
    await expectNoOverflow(page, 'a client without row-level security')
    await page.setViewportSize({ width: 1280, height: 800 })
    const reader = await enter(await userOf(t, 'Reader', 'reader'))
    await reader.page.goto(policies)
    await reader.page.getByText('An operator with').waitFor()
    assert.equal(await reader.page.getByRole('button', { name: 'Switch it on' }).count(), 0)

    await page.route('**/row-level-security', (route) =>
      route.request().url().includes('/admin/') ? route.abort() : route.fallback(),
    )
    await button.focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByText('Only gatehouse.yaml switches it off').waitFor()
    await expectAccessible(page, 'the question')
    await agree(page, 'Switch it on')
    await page.getByRole('alert').waitFor()
    await page.unroute('**/row-level-security')
    await button.focus()
    await page.keyboard.press('Enter')
    await agree(page, 'Switch it on')
    await page.getByText('row-level security is off', { exact: true }).waitFor()
    assert.deepEqual(await trailOf('default'), [['client.protected', true]])
  })

  test('what the test receiver got is shown, and what is hostile in it is text', async () => {
    const { t, at, root, enter } = await openConsole()
    const { page } = await enter(root, '/webhooks')
    await press(page, 'Received')
    await page.getByText('Nothing yet').waitFor()
    await expectAccessible(page, 'nothing received')
    const body = { type: '<img src=/console/stolen>\u202e', data: 12345678901234567890n.toString() }
    const raw = JSON.stringify(body).replace('"12345678901234567890"', '12345678901234567890')
    const headers = { 'content-type': 'application/json', 'x-hostile': '<b>bold</b>' }
    await t.anon.send('POST', '/dev/webhooks', { raw, headers })
    await t.anon.send('POST', '/dev/webhooks', { raw: `"${'x'.repeat(1_000_000)}"`, headers })
    await press(page, 'Read again')
    const hostile = page.getByRole('link', { name: '<img src=/console/stolen>' })
    await hostile.waitFor()
    await expectAccessible(page, 'what was received')
    await hostile.focus()
    await page.keyboard.press('Enter')
    await page.getByText('not signed').waitFor()
    await page.getByText('"data": 12345678901234567890').waitFor()
    await page.getByText('<b>bold</b>').waitFor()
    assert.equal(await page.locator('main img, main b').count(), 0)
    await expectAccessible(page, 'a request')
    await page.setViewportSize({ width: 360, height: 740 })
    await expectNoOverflow(page, 'a request')
    await page.goto(`${at}/webhooks/received`)
    await page.getByRole('link', { name: 'without a type' }).click()
    await page.getByText(/… and \d+,\d{3} more characters/).waitFor()
    await expectNoOverflow(page, 'a long request')
    await page.goto(`${at}/webhooks/new`)
    await page.route('**/dev/webhooks', (route) => route.abort())
    await page.getByLabel('For', { exact: true }).fill('kept')
    await press(page, 'Use the test receiver')
    await page.getByRole('alert').waitFor()
    assert.equal(await page.getByLabel('For', { exact: true }).inputValue(), 'kept')
  })
}
