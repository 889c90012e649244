import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { eventually } from '#test/embedded.ts'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'
import { openBrowser, otherOrigin, withoutBrowser } from './chromium.ts'

if (withoutBrowser !== false) test('live rows of the client in a browser', { skip: withoutBrowser })
else await tests()

const CLIENT = new URL('../../packages/client/', import.meta.url)

async function tests(): Promise<void> {
  // The client without a build: browsers lack nothing but to skip its types.
  const app = await otherOrigin(async ({ url = '' }, response) => {
    if (!url.startsWith('/src/'))
      return void response.setHeader('content-type', 'text/html').end('<title>App</title>')
    const text = stripTypeScriptTypes(await readFile(new URL(`.${url}`, CLIENT), 'utf8'))
    response.setHeader('content-type', 'text/javascript').end(text)
  })
  const { t, sql, admin, users, createTable, secured } = await createSecuredTables({
    auth: { trusted_origins: [app.origin] },
  })
  await createTable('card', [TEXT, USER])
  await secured('card', [{ preset: 'owner' }])
  const enabled = await admin.send('PUT', '/management/tables/card/realtime', { body: { enabled: true } })
  assert.equal(enabled.status, 200, enabled.text)
  const { apiKey: key } = await t.key(['card.*'], { client_name: 'app' })
  const options = { url: t.url, key, client: 'app' }
  const browser = await openBrowser()
  const insert = (text: string) =>
    sql(`insert into card (user_id, text) values ('${users.ada.id}', '${text}')`)

  async function openPage(): Promise<Page> {
    const { page } = await browser.visit()
    await page.goto(app.origin)
    await page.evaluate(`import('/src/client.ts').then(({ createClient }) => {
      const db = createClient({ ...${JSON.stringify(options)}, session: () => ${JSON.stringify(users.ada.token)} })
      globalThis.states = []
      db.from('card').select({ text: true }).live((state) => states.push(state))
    })`)
    return page
  }
  const shows = (page: Page, ...texts: string[]) =>
    eventually(async () => {
      const state: string = await page.evaluate(
        `((last) => last && [last.status, ...last.rows.map(({ text }) => text).sort()].join())(states.at(-1))`,
      )
      return state === ['live', ...texts.toSorted()].join()
    })

  test('a page that was offline, and one that was frozen, show the rows of now', async () => {
    await insert('one')
    const page = await openPage()
    await shows(page, 'one')
    await insert('two')
    await shows(page, 'one', 'two')

    await page.context().setOffline(true)
    await sql(`delete from card where text = 'one'`)
    await insert('three')
    await page.context().setOffline(false)
    await shows(page, 'two', 'three')

    const devtools = await page.context().newCDPSession(page)
    await devtools.send('Page.setWebLifecycleState', { state: 'frozen' })
    await sql(`delete from card where text = 'two'`)
    await devtools.send('Page.setWebLifecycleState', { state: 'active' })
    await shows(page, 'three')

    // It never showed less than there was at some moment, and no row twice.
    const seen: string[] = await page.evaluate(
      `states.map(({ rows }) => rows.map(({ text }) => text).sort().join())`,
    )
    assert.deepEqual(
      new Set(seen.filter((text) => !['', 'one', 'one,two', 'two', 'three,two', 'three'].includes(text))),
      new Set(),
    )
  })
}
