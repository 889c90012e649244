import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freePort } from '#test/free-port.ts'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'
import { openBrowser, withoutBrowser } from './chromium.ts'
import { add, newVisitor, serveExample, shows } from './live-example.ts'

if (withoutBrowser !== false) test('the example for live rows in a browser', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const port = await freePort()
  const app = `http://localhost:${port}`
  const { t, sql, admin, createTable, secured } = await createSecuredTables({
    auth: { trusted_origins: [app] },
  })
  await createTable('card', [TEXT, USER])
  await secured('card', [{ preset: 'owner' }, { preset: 'signed_in_read' }])
  const body = { enabled: true }
  const enabled = await admin.send('PUT', '/management/tables/card/realtime', { body })
  assert.equal(enabled.status, 200, enabled.text)
  const { apiKey } = await t.key(['card.*'], { client_name: 'app' })
  await serveExample(port, { GATEHOUSE_URL: t.service.kernel.publicUrl(), PAGES: apiKey, CLIENT: 'app' })
  const browser = await openBrowser()
  const visitor = (name: string) => newVisitor(browser, app, name)

  test('two users see the same cards, also after a break, and each card once', async () => {
    const [ada, bea] = [await visitor('ada'), await visitor('bea')]
    await add(ada, 'one')
    await shows(ada, 'one')
    await shows(bea, 'one')
    await add(bea, 'two')
    await shows(ada, 'one', 'two')
    // A second tab of a browser is told by the first.
    const tab = await ada.context().newPage()
    await tab.goto(app)
    await shows(tab, 'one', 'two')

    await bea.context().setOffline(true)
    await sql(`insert into card (text) values ('three'); delete from card where text = 'one'`)
    await shows(ada, 'two', 'three')
    await shows(tab, 'two', 'three')
    await bea.context().setOffline(false)
    await shows(bea, 'two', 'three')

    await bea.locator('#cards li', { hasText: 'two' }).getByRole('button').click()
    for (const page of [ada, bea, tab]) await shows(page, 'three')
    // The tab that had the stream hands it on.
    await ada.close()
    await add(tab, 'four')
    await shows(tab, 'three', 'four')
    await shows(bea, 'three', 'four')
  })
}
