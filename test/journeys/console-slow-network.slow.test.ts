import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { withoutBrowser } from '#test/browser/chromium.ts'
import { untilLoaded } from '#test/browser/loaded.ts'
import { openConsole } from '#test/console.ts'

/** As of a phone at the edge of its network: milliseconds, and bytes a second. */
const SLOW = { offline: false, latency: 400, downloadThroughput: 60_000, uploadThroughput: 30_000 }

if (withoutBrowser !== false) test('the console on a slow network', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const { t, enter } = await openConsole()
  const { page } = await enter()
  const screens = page.getByRole('navigation', { name: 'Screens' }).getByRole('link')
  const headed = (title: string) => page.getByRole('heading', { name: title, level: 1 })
  const loading = page.getByRole('status').filter({ hasText: /^Loading/ })

  test('each screen says that it loads, and then shows what has come', async () => {
    await slowDown(page)
    const [, ...titles] = await screens.allTextContents()
    for (const title of titles) {
      // It is waited for before the click: on a busy machine it may have gone when the click is answered.
      await Promise.all([loading.first().waitFor(), screens.getByText(title, { exact: true }).click()])
      await headed(title).waitFor()
      await untilLoaded(page)
      assert.equal(await page.getByRole('alert').count(), 0, title)
    }
  })

  test('who goes on before a screen has come sees the later one', async () => {
    await page.reload()
    await headed('Settings').waitFor()
    await screens.getByText('Users', { exact: true }).click()
    await screens.getByText('Audit', { exact: true }).click()
    await headed('Audit').waitFor()
    await untilLoaded(page)
    assert.deepEqual([await headed('Audit').count(), await headed('Users').count()], [1, 0])
    assert.match(page.url(), /\/audit$/)
  })

  test('an act is sent once, however often its button is pressed while it runs', async () => {
    await screens.getByText('Keys', { exact: true }).click()
    await page.getByRole('button', { name: 'New key' }).click()
    await page.getByLabel('Name', { exact: true }).fill('pressed often')
    await page.getByRole('checkbox', { name: 'gateway.query.read' }).check()
    const create = page.getByRole('button', { name: 'Create the key' })
    for (let press = 0; press < 3; press++) await create.dispatchEvent('click')
    await page.getByRole('textbox', { name: 'Secret' }).waitFor()
    const { db } = t.service.kernel
    const made = await db.selectFrom('apiKey').select('id').where('name', '=', 'pressed often').execute()
    assert.equal(made.length, 1)
  })
}

async function slowDown(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page)
  await session.send('Network.enable')
  await session.send('Network.emulateNetworkConditions', SLOW)
}
