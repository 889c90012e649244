import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { withoutBrowser } from '#test/browser/chromium.ts'
import {
  answerWith,
  expectAccessible,
  expectNoOverflow,
  expectZoomable,
  openConsole,
  userOf,
} from '#test/console.ts'
import { withClient } from '#test/database.ts'

if (withoutBrowser !== false) test('the public routes of the console in a browser', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const { t, at, root, enter, trailOf } = await openConsole({
    config: {
      auth: { admin: { roles: { opener: { operator: ['routes'] }, support: { user: ['list'] } } } },
    },
  })
  const { db } = t.service.kernel
  const sql = (text: string) => withClient(t.clientUrl, (client) => client.query(text))
  await sql(`create table reviews (id int primary key, book text, stars int, status text, big bigint);
    insert into reviews values (1, 'Sketches', 5, 'shown', 9007199254740993), (2, 'Notes', 1, 'new', 2)`)
  const { page } = await enter(root, '/public-routes')

  const routeOf = (key: string) =>
    db.selectFrom('publicRoute').selectAll().where('routeKey', '=', key).executeTakeFirst()
  const press = (name: string, on: Page = page) => on.getByRole('button', { name, exact: true }).click()
  const open = (path: string, on: Page = page) => on.goto(at + path)
  const made = async (route_key: string, more: Record<string, unknown> = {}) => {
    const facts = {
      client_name: 'default',
      allowed_ops: ['fetch'],
      table_name: 'reviews',
      requires_key: false,
    }
    const answer = await t.admin.post('/admin/public-routes', { route_key, ...facts, ...more })
    assert.equal(answer.status, 201, answer.text)
    return answer.body.data.id as string
  }
  const answer = page.getByRole('region', { name: 'Body of the answer' })

  test('by keyboard alone a route is opened, and it opens what its record says', async () => {
    await page.getByRole('button', { name: 'New route' }).focus()
    await page.keyboard.press('Enter')
    await page.locator('input[maxlength="63"]:focus').first().waitFor()
    await page.keyboard.type('reviews')
    await page.getByLabel('Table').focus()
    await page.keyboard.type('reviews')
    await page.getByLabel('Columns').focus()
    await page.keyboard.type('book, stars')
    await page.getByLabel('Column', { exact: true }).focus()
    await page.keyboard.type('status')
    await page.getByLabel('Value').focus()
    await page.keyboard.type('shown')
    await page.keyboard.press('Enter')
    await page.getByRole('checkbox', { name: 'need a key' }).focus()
    await page.keyboard.press('Space')
    await page.getByText('Everybody who can reach the service').waitFor()
    await expectAccessible(page, 'the form of a new route')
    await expectZoomable(page, 'the form of a new route')
    await page.getByRole('button', { name: 'Open the route' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'reviews', level: 1 }).waitFor()
    const route = await routeOf('reviews')
    assert.deepEqual(
      [
        route?.allowedOps,
        route?.columns,
        route?.requiresKey,
        JSON.parse(route?.conditions ?? ''),
        route?.createdBy,
      ],
      [['fetch'], ['book', 'stars'], false, [{ column: 'status', operator: 'eq', value: 'shown' }], root.id],
    )
    assert.deepEqual(await trailOf(route?.id ?? ''), [['public_route.created', true]])
    await expectAccessible(page, 'a route')
    await expectZoomable(page, 'a route')
    await press('Try')
    assert.match(await answerWith(page, '200 OK'), /"book": "Sketches",\s+"stars": 5/)
  })

  test('a route is tried as a stranger, not as the person, and a write asks first', async () => {
    await made('writes', { allowed_ops: ['insert', 'fetch'] })
    await open('/public-routes/writes')
    const curl = page.getByRole('region', { name: 'Line of curl' })
    await page.getByLabel('Body', { exact: true }).fill(`{"insert_body": {"id": 3, "book": "it's"}}`)
    assert.match((await curl.textContent()) ?? '', /curl -i -X POST .*\/public\/writes\/insert.*it'\\''s/s)
    await press('Try')
    const dialog = page.getByRole('dialog')
    await dialog.getByText('/public/writes/insert').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    assert.deepEqual((await sql('select 1 from reviews where id = 3')).rows, [])
    const sent = page.waitForRequest('**/public/writes/insert')
    await press('Try')
    await dialog.getByRole('button', { name: 'Send it' }).click()
    const headers = await (await sent).allHeaders()
    assert.deepEqual([headers.cookie, headers['x-service-session'], headers.apikey], Array(3).fill(undefined))
    await page.getByText('200 OK').waitFor()
    assert.deepEqual((await sql('select book from reviews where id = 3')).rows, [{ book: "it's" }])
    await page.getByLabel('Operation').selectOption('fetch')
    await page
      .getByLabel('Body', { exact: true })
      .fill('{"conditions": [{"column": "id", "operator": "eq", "value": 1}]}')
    await press('Try')
    await page.getByText('9007199254740993').waitFor()
    await page.getByLabel('Body', { exact: true }).fill('{"columns": ["nothing"]}')
    await press('Try')
    assert.match(await answerWith(page, '400 Bad Request'), /unknown_column/)
  })

  test('a route that asks for a key is tried with one, which no address and no storage has', async () => {
    await made('keyed', { requires_key: true })
    const { apiKey } = await t.key(['reviews.read'])
    await open('/public-routes/keyed')
    await press('Try')
    await page.getByText('401 Unauthorized').waitFor()
    await page.getByLabel('Key', { exact: true }).fill(apiKey)
    await press('Try')
    await page.getByText('200 OK').waitFor()
    const kept = String(
      await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href])'),
    )
    assert.ok(!kept.includes(apiKey))
    assert.ok(!(await page.getByRole('region', { name: 'Line of curl' }).textContent())?.includes(apiKey))
  })

  test('live rows are shown as they come, until one stops', async () => {
    const manager = await t.key(['*', 'management.*'])
    const live = await manager.send('PUT', '/management/tables/reviews/realtime', {
      body: { enabled: true },
    })
    assert.equal(live.status, 200, live.text)
    await made('live', { allowed_ops: ['subscribe'] })
    await open('/public-routes/live')
    await press('Try')
    await page.getByText('The answer goes on').waitFor()
    await answer.getByText('Sketches').waitFor()
    await sql("insert into reviews (id, book) values (4, 'Come later')")
    await answer.getByText('Come later').waitFor()
    await press('Stop')
    await page.getByText('The answer goes on').waitFor({ state: 'detached' })
    await answer.getByText('Come later').waitFor()
  })

  test('an edit sends only what was changed, and what is refused stays in the form', async () => {
    await made('taken')
    await open('/public-routes/NEW')
    await page.getByLabel('Route', { exact: true }).fill('taken')
    await page.getByLabel('Table').fill('reviews')
    await press('Open the route')
    await page.getByText('public_route_exists').waitFor()
    assert.equal(await page.getByLabel('Table').inputValue(), 'reviews')
    const id = await made('edited', { conditions: [{ column: 'big', operator: 'lt', value: 5 }] })
    await open('/public-routes/edited')
    await press('Edit')
    await page.getByLabel('Columns').fill('book')
    await page.getByLabel('All of them, as JSON').fill('[{"column": "big"')
    await press('Save')
    await page.getByText('The fixed conditions are not JSON').waitFor()
    await page
      .getByLabel('All of them, as JSON')
      .fill('[{"column": "big", "operator": "lt", "value": 9007199254740993}]')
    await page.getByLabel('Table').fill('')
    await press('Save')
    await page.getByText('invalid_public_route').waitFor()
    assert.equal(await page.getByLabel('Columns').inputValue(), 'book')
    await page.getByLabel('Table').fill('reviews')
    await t.admin.send('PATCH', '/admin/public-routes/edited', { body: { run_as: 'owner' } })
    await page.context().setOffline(true)
    await press('Save')
    await page.getByText('The service does not answer').waitFor()
    await page.context().setOffline(false)
    await press('Save')
    await page.getByText('edited was changed').waitFor()
    const route = await routeOf('edited')
    assert.deepEqual([route?.columns, route?.runAs, route?.tableName], [['book'], 'owner', 'reviews'])
    assert.match(route?.conditions ?? '', /9007199254740993/)
    assert.deepEqual((await trailOf(id)).at(-1), ['public_route.updated', true])
  })

  test('a route is closed, opened and deleted, and is found by its state', async () => {
    const id = await made('turned')
    const status = async () => (await t.anon.post('/public/turned/fetch', {})).status
    await open('/public-routes/turned')
    const dialog = page.getByRole('dialog')
    await press('Close')
    await dialog.getByRole('button', { name: 'Close the route' }).click()
    await page.getByText('turned is closed').waitFor()
    assert.equal(await status(), 403)
    await open('/public-routes')
    await page.getByLabel('State').selectOption('closed')
    await page.getByText('1–1 of 1').waitFor()
    assert.match(page.url(), /state=closed/)
    await page.getByRole('link', { name: 'turned' }).click()
    await press('Open')
    await page.getByText('turned is open').waitFor()
    assert.equal(await status(), 200)
    await press('Delete')
    await dialog.getByRole('button', { name: 'Delete the route' }).click()
    await page.getByText('turned was deleted').waitFor()
    assert.equal(await routeOf('turned'), undefined)
    const acts = ['created', 'updated', 'updated', 'removed'].map((act, at) => [
      `public_route.${act}`,
      at > 0,
    ])
    assert.deepEqual(await trailOf(id), acts)
  })

  test('what one lacks is not opened; who has no right sees nothing', async () => {
    const { page: theirs } = await enter(await userOf(t, 'Olga', 'opener'), '/public-routes/NEW')
    await theirs.getByLabel('Route', { exact: true }).fill('too-much')
    await theirs.getByLabel('Table').fill('reviews')
    await press('Open the route', theirs)
    await theirs.getByText('insufficient_rights').waitFor()
    assert.equal(await theirs.getByLabel('Route', { exact: true }).inputValue(), 'too-much')
    const { page: support } = await enter(await userOf(t, 'Sue', 'support'), '/public-routes')
    await support.getByRole('heading', { name: 'Nothing here' }).waitFor()
    assert.equal(await support.getByRole('link', { name: 'Public routes' }).count(), 0)
  })

  test('hostile records and answers are text, and the screens are accessible and fit 360 pixels', async () => {
    await sql(
      `insert into reviews (id, book) values (9, '<img src=x onerror="document.title=1">abc' || chr(8238) || repeat('x', 300000))`,
    )
    const hostile = { column: '<b>', operator: 'eq', value: '<script>\u202e' }
    await made('hostile', { conditions: [hostile] })
    await made('big', { conditions: [{ column: 'id', operator: 'eq', value: 9 }] })
    await page.setViewportSize({ width: 360, height: 740 })
    for (const path of ['', '/NEW', '/hostile', '/big']) {
      await open(`/public-routes${path}`)
      await expectNoOverflow(page, path)
      await expectAccessible(page, `${path} at 360 px`)
    }
    await press('Try')
    await answer.getByText(/… and \d+,\d{3} more characters/).waitFor()
    await answer.locator('.code-point', { hasText: 'U+202E' }).waitFor()
    assert.equal(await page.locator('img, main script').count(), 0)
    await expectNoOverflow(page, 'an answer')
    await expectAccessible(page, 'an answer')
    await open('/public-routes/none')
    await page.getByRole('alert').waitFor()
  })
}
