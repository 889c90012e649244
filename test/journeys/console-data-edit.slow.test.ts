import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { withoutBrowser } from '#test/browser/chromium.ts'
import { expectAccessible, expectNoOverflow, expectZoomable, openConsole, userOf } from '#test/console.ts'
import { withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'

if (withoutBrowser !== false) test('cells of the console', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const { t, at, root, enter } = await openConsole()
  const sql = (text: string, values: unknown[] = []) =>
    withClient(t.clientUrl, async (client) => (await client.query(text, values)).rows)
  const key = await t.key(['gateway.*'])
  /** Through the gateway, which knows the table then. */
  const ddl = async (query: string) => assert.equal((await key.post('/gateway/query', { query })).status, 200)
  const LONG = `${'long '.repeat(200_000)}end`

  await sql(`create type mood as enum ('calm', 'glad');
    create table notes (id bigint primary key, title text, big numeric, note text default 'x', ok boolean, mood mood, data json, facts jsonb, tags text[],
      at timestamptz, twice bigint generated always as (id * 2) stored, needed text not null default 'n')`)
  // After it: a table that is made later is unknown to the service for up to a second.
  const { page } = await enter(root, '/data')

  /** A row of its own for each test. */
  let last = 9_007_199_254_740_992n
  async function newRow(): Promise<string> {
    const id = String(++last)
    await sql(
      `insert into notes (id, title, big, ok, mood, data, facts, tags, at) values ($1, 'first', 12345678901234567890.10, true, 'calm',
        '{"n" : 12345678901234567890}', '[1]', '{a,b}', '2026-01-02 03:04:05.678901+00')`,
      [id],
    )
    return id
  }
  const row = async (id: string) => (await sql('select * from notes where id = $1', [id]))[0]
  const open = async (id: string, on: Page = page) => {
    await on.goto(`${at}/data?table=notes&where=${encodeURIComponent(JSON.stringify([['id', 'eq', id]]))}`)
    await on.getByRole('gridcell', { name: id, exact: true }).waitFor()
  }
  const COLUMNS = 'id title big note ok mood data facts tags at twice needed'.split(' ')
  const cell = (name: string, on: Page = page) => on.locator(`td[data-at="0:${COLUMNS.indexOf(name)}"]`)
  const editor = (name: string, on: Page = page) => on.getByLabel(`New value of ${name}`)
  const openCell = async (name: string, on: Page = page) => {
    await cell(name, on).dblclick()
    await editor(name, on).and(on.locator(':focus')).waitFor()
  }
  const trail = async () =>
    (await t.service.kernel.db.selectFrom('auditEvent').select('id').where('actorId', '=', root.id).execute())
      .length

  test('by keyboard alone cells are edited one after the other, and undone, with every digit', async () => {
    const id = await newRow()
    await open(id)
    const before = await trail()
    await cell('title').focus()
    await page.keyboard.press('Enter')
    await page.locator('input:focus').waitFor()
    await page.keyboard.type('second')
    await page.keyboard.press('Tab')
    await page.locator('[aria-label="New value of big"]:focus').waitFor()
    await page.keyboard.type('98765432109876543210.123456789')
    await page.keyboard.press('Enter')
    await page.locator('td:focus').waitFor()
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('F2')
    await page.locator('[aria-label="New value of note"]:focus').waitFor()
    await page.keyboard.type('lost')
    await page.keyboard.press('Escape')
    await cell('note').and(page.locator(':focus')).getByText('x').waitFor()
    const written = await row(id)
    assert.deepEqual(
      [written.title, written.big, written.note],
      ['second', '98765432109876543210.123456789', 'x'],
    )
    await page.getByRole('button', { name: 'Undo the edit of big' }).waitFor()
    await page.keyboard.press('Control+z')
    await page.getByText('is as it was before').waitFor()
    assert.equal((await row(id)).big, '12345678901234567890.10')
    await page.keyboard.press('Control+z')
    await cell('title').getByText('first').waitFor()
    assert.equal((await row(id)).title, 'first')
    assert.equal(await trail(), before, 'the trail is of acts on the service, not of rows')
  })

  test('NULL and the empty text are two values, and choices, dates and lists are written as the database reads them', async () => {
    const id = await newRow()
    await open(id)
    const edit = async (name: string, act: () => Promise<unknown>, shown: string) => {
      await openCell(name)
      await act()
      await page.keyboard.press('Enter')
      await cell(name).getByText(shown, { exact: true }).waitFor()
    }
    await edit('title', () => editor('title').fill(''), 'empty')
    assert.equal((await row(id)).title, '')
    await edit('title', () => editor('title').press('Backspace'), 'null')
    assert.equal((await row(id)).title, null)
    await edit('big', () => editor('big').fill(''), 'null')
    assert.equal((await row(id)).big, null)
    await edit('ok', () => editor('ok').selectOption('false'), 'false')
    await edit('mood', () => editor('mood').selectOption('glad'), 'glad')
    await edit('tags', () => editor('tags').fill('{x,"y z"}'), '{x,"y z"}')
    await edit('at', () => editor('at').fill('2030-05-06 07:08:09.000001'), '2030-05-06 07:08:09.000001+00')
    const { ok, mood, tags } = await row(id)
    assert.deepEqual([ok, mood, tags], [false, 'glad', ['x', 'y z']])
    await cell('twice').dblclick()
    assert.equal(await editor('twice').count(), 0, 'the database computes it')
    await openCell('needed')
    await editor('needed').press('ControlOrMeta+a')
    await editor('needed').press('Backspace')
    await editor('needed').press('Backspace')
    await page.keyboard.press('Enter')
    await cell('needed').getByText('empty').waitFor()
  })

  test('JSON is checked before it is sent, and keeps its digits', async () => {
    const id = await newRow()
    await open(id)
    await cell('data').focus()
    await page.keyboard.press('Enter')
    await editor('data').and(page.locator(':focus')).waitFor()
    const dialog = page.getByRole('dialog', { name: 'Edit data' })
    assert.equal(await editor('data').inputValue(), '{"n" : 12345678901234567890}')
    await editor('data').fill('{"n": 1,}')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText('This is not JSON').waitFor()
    await expectAccessible(page, 'the wide editor')
    await expectZoomable(page, 'the wide editor')
    await editor('data').fill('{"n": 98765432109876543210.5,\n "m": null}')
    await page.keyboard.press('Control+Enter')
    await dialog.waitFor({ state: 'detached' })
    const [{ data }] = await sql('select data::text from notes where id = $1', [id])
    assert.equal(data, '{"n":98765432109876543210.5,"m":null}')
    await page.getByRole('button', { name: 'Undo the edit of data' }).click()
    await page.getByText('is as it was before').first().waitFor()
    assert.match(
      (await sql('select data::text from notes where id = $1', [id]))[0].data,
      /12345678901234567890/,
    )
  })

  test('a cell of a megabyte is cut in the grid, and edited whole', async () => {
    const id = await newRow()
    await sql('update notes set title = $1 where id = $2', [LONG, id])
    await open(id)
    await cell('title')
      .getByText(/… and \d{3},\d{3} more characters/)
      .or(cell('title').getByText(/1,000,\d{3} more/))
      .waitFor()
    await openCell('title')
    assert.equal((await editor('title').inputValue()).length, LONG.length)
    await editor('title').press('ControlOrMeta+End')
    await page.keyboard.type('!')
    await page.keyboard.press('Control+Enter')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    assert.equal((await row(id)).title, `${LONG}!`)
    await sql(`update notes set title = E'a\\r\\nb' where id = $1`, [id])
    await page.getByRole('button', { name: 'Read again' }).click()
    await cell('title').getByText('more characters').waitFor({ state: 'detached' })
    await openCell('title')
    await editor('title').press('ControlOrMeta+End')
    await page.keyboard.type('c')
    await page.keyboard.press('Control+Enter')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    assert.equal((await row(id)).title, 'a\r\nbc', 'line breaks stay as they were')
  })

  test('two people edit one cell: the second one sees both versions, and decides', async () => {
    const id = await newRow()
    const colleague = await userOf(t, 'Cora', 'admin')
    const { page: other } = await enter(colleague, `/data?table=notes`)
    await open(id)
    await open(id, other)
    for (const name of ['title', 'data']) {
      const theirs = name === 'data' ? '{"theirs":1}' : 'theirs'
      const mine = name === 'data' ? '{"mine":1}' : 'mine'
      await openCell(name)
      await editor(name).fill(mine)
      await openCell(name, other)
      await editor(name, other).fill(theirs)
      await editor(name, other).press('Control+Enter')
      await cell(name, other).getByText(theirs).waitFor()
      await editor(name).press('Control+Enter')
      await page.getByText('Somebody has changed this cell').waitFor()
      await page.locator('.conflict').getByText(theirs, { exact: true }).waitFor()
      assert.equal(await editor(name).inputValue(), mine)
      await expectAccessible(page, 'a conflict')
      if (name === 'data') await page.getByRole('button', { name: 'Take theirs' }).click()
      else await page.getByRole('button', { name: 'Write mine over it' }).click()
      // The cell has both texts while it is open.
      await editor(name).waitFor({ state: 'detached' })
      await cell(name)
        .getByText(name === 'data' ? theirs : mine)
        .waitFor()
    }
    const { title, data } = await row(id)
    assert.deepEqual([title, data], ['mine', { theirs: 1 }])
    await other
      .getByRole('button', { name: 'Undo the edit of title' })
      .or(other.getByRole('button', { name: 'Undo the edit of data' }))
      .click()
    await other.getByText('is as it was before').waitFor()
    await other.getByRole('button', { name: 'Undo the edit of title' }).click()
    await other.getByText('has been changed since').waitFor()
    assert.equal((await row(id)).title, 'mine', 'an undo overwrites nobody')
  })

  test('what was typed stays when the network fails, the value does not fit, the row is gone or a right is', async () => {
    const id = await newRow()
    let isRefused = false
    const json = { status: 'error', code: 'insufficient_rights', message: 'A right is missing' }
    // Before the page is loaded: it would take note of it some time after the call, and the key that follows may be faster.
    await page.route('**/gateway/update', (route) =>
      isRefused ? route.fulfill({ status: 403, json }) : route.continue(),
    )
    await open(id)
    await openCell('big')
    await editor('big').fill('not a number')
    await page.keyboard.press('Enter')
    await page.getByText('invalid_value').waitFor()
    assert.equal(await editor('big').inputValue(), 'not a number')
    await editor('big').fill('7')
    await page.context().setOffline(true)
    await page.keyboard.press('Enter')
    await page.getByText('The service does not answer').waitFor()
    assert.equal(await editor('big').inputValue(), '7')
    await page.context().setOffline(false)
    isRefused = true
    await page.keyboard.press('Enter')
    await page.getByText('insufficient_rights').waitFor()
    assert.equal(await editor('big').inputValue(), '7')
    await page.unrouteAll()
    // Other pages and orders leave it open.
    await page.getByRole('button', { name: 'Remove the filter on id' }).click()
    await page.getByRole('button', { name: 'title' }).click()
    await page.waitForURL(/sort=title/)
    assert.equal(await editor('big').inputValue(), '7')
    await page.goBack()
    await page.goBack()
    await ddl('alter table notes rename column big to large')
    await editor('big').press('Enter')
    await page.locator('.editor').getByText('unknown_column').waitFor()
    await ddl('alter table notes rename column large to big')
    await sql('delete from notes where id = $1', [id])
    await editor('big').press('Enter')
    await page.getByText('The row is gone').waitFor()
    assert.equal(await editor('big').inputValue(), '7')
    await page.getByRole('button', { name: 'Close' }).click()
    assert.equal(await editor('big').count(), 0)
  })

  test('a slow write is made once', async () => {
    const id = await newRow()
    await open(id)
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    let writes = 0
    await page.route('**/gateway/update', async (route) => {
      writes++
      await held
      await route.continue()
    })
    await openCell('title')
    await editor('title').fill('slow')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Enter')
    await page.locator('input[aria-busy=true]').waitFor()
    release()
    await cell('title').getByText('slow').waitFor()
    assert.deepEqual([writes, (await row(id)).title], [1, 'slow'])
    await page.unrouteAll()
  })

  test('the grid and an open cell are accessible and fit 360 pixels, and keys move in it', async () => {
    const id = await newRow()
    await open(id)
    await openCell('title')
    await expectAccessible(page, 'an open cell')
    await expectZoomable(page, 'an open cell')
    await page.keyboard.press('Escape')
    await page.keyboard.press('Home')
    assert.equal(await page.locator('td:focus').textContent(), id)
    await page.keyboard.press('End')
    assert.equal(await page.locator('td:focus').textContent(), 'n')
    await page.context().grantPermissions(['clipboard-read'])
    await page.keyboard.press('Control+c')
    await eventually(async () => (await page.evaluate('navigator.clipboard.readText()')) === 'n')
    await page.setViewportSize({ width: 360, height: 740 })
    await openCell('title')
    await expectNoOverflow(page, 'an open cell')
    await page.keyboard.press('Escape')
    await page.setViewportSize({ width: 1_280, height: 800 })
  })
}
