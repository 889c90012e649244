import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { withoutBrowser } from '#test/browser/chromium.ts'
import { openConsole } from '#test/console.ts'
import { withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { PASSWORD } from '#test/harness.ts'

if (withoutBrowser !== false) test('live rows of the console', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const { t, at, root, enter } = await openConsole({ config: { gateway: { max_rows: 1_000 } } })
  const key = await t.key(['gateway.*', 'management.*'])
  const sql = (text: string, values: unknown[] = []) =>
    withClient(t.clientUrl, async (client) => (await client.query(text, values)).rows)
  const live = async (table: string, columns: string, rows: string) => {
    await key.post('/gateway/query', {
      query: `create table ${table} (${columns}); insert into ${table} ${rows}`,
    })
    const made = await key.send('PUT', `/management/tables/${table}/realtime`, { body: { enabled: true } })
    assert.equal(made.status, 200, made.text)
  }
  await live('board', 'id int primary key, text text, n int', `values (1, 'one', 1), (2, 'two', 2)`)
  await live('crowd', 'id int primary key, text text', `select n, 'x' from generate_series(1, 1200) n`)
  const cells = 'x int, y int, z int, text text, primary key (x, y, z)'
  await live('cells', cells, `select n, n, n, 'x' from generate_series(1, 1200) n`)
  const { page } = await enter(root, '/data')
  /** Texts of all cells that were marked, noted from now on: a mark lasts a moment. */
  const noteMarks = () =>
    page.evaluate(`(() => {
      window.marked = new Set()
      const look = () => document.querySelectorAll('td.changed').forEach((cell) => window.marked.add(cell.textContent))
      new MutationObserver(look).observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true })
    })()`)
  /** Waits for them, since they come after the rows. */
  const marks = (...texts: string[]) =>
    eventually(async () => isDeepStrictEqual(await page.evaluate('[...window.marked].sort()'), texts))

  test('rows that others write appear, marked for a moment, and those that leave go', async () => {
    await page.goto(`${at}/data?table=board`)
    await page.getByText('live', { exact: true }).waitFor()
    await noteMarks()
    await sql(`update board set text = 'uno' where id = 1`)
    await page.getByRole('gridcell', { name: 'uno' }).waitFor()
    await marks('uno')
    await sql(`insert into board values (3, 'three', 3)`)
    await page.getByRole('gridcell', { name: 'three' }).waitFor()
    await marks('3', 'three', 'uno')
    await sql('delete from board where id = 2')
    await page.getByRole('gridcell', { name: 'two' }).waitFor({ state: 'detached' })
    await marks('3', 'three', 'uno')
  })

  test('a mark stays for its time when another change comes', async () => {
    await page.evaluate(`(() => {
      const wait = window.setTimeout
      window.setTimeout = (work, time) => wait(work, time === 4_000 ? 600_000 : time)
    })()`)
    await sql(`update board set n = 7 where id = 3`)
    await page.locator('td.changed', { hasText: '7' }).waitFor()
    await sql(`update board set text = 'eins' where id = 1`)
    await page.locator('td.changed', { hasText: 'eins' }).waitFor()
    assert.equal(await page.locator('td.changed', { hasText: '7' }).count(), 1)
    await sql(`update board set text = 'uno' where id = 1`)
    await page.goto(`${at}/data?table=board`)
    await page.getByRole('gridcell', { name: 'uno' }).waitFor()
    await page.getByText('live', { exact: true }).waitFor()
  })

  test('an open cell stays, says what others have written, and writes over it only when one says so', async () => {
    await page.getByRole('gridcell', { name: 'uno' }).dblclick()
    const editor = page.getByLabel('New value of text')
    await editor.fill('mine')
    await sql(`update board set text = 'theirs', n = 9 where id = 1`)
    await page.locator('.conflict').getByText('theirs', { exact: true }).waitFor()
    assert.equal(await editor.inputValue(), 'mine')
    await editor.and(page.locator(':focus')).waitFor()
    await editor.press('Enter')
    await page.getByRole('button', { name: 'Write mine over it' }).click()
    // The cell has that text while it is open, too.
    await editor.waitFor({ state: 'detached' })
    await page.getByRole('gridcell', { name: 'mine' }).waitFor()
    assert.deepEqual(await sql('select text, n from board where id = 1'), [{ text: 'mine', n: 9 }])
    await page.getByRole('gridcell', { name: 'mine' }).dblclick()
    await editor.fill('typed')
    await sql('delete from board where id = 1')
    await page.getByRole('region', { name: 'The open cell' }).waitFor()
    assert.equal(await editor.inputValue(), 'typed')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The row is gone').waitFor()
    await page.getByRole('button', { name: 'Close' }).click()
  })

  test('a lost stream is called stale, and what was missed is shown when it is back', async () => {
    await page.goto(`${at}/data?table=board`)
    await page.getByText('live', { exact: true }).waitFor()
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    await page.route('**/realtime', async (route) => {
      await held
      await route.continue()
    })
    // The stream ends, as when a session is looked at again or a service restarts.
    await page.context().setOffline(true)
    await page.evaluate('window.dispatchEvent(new Event("online"))')
    await page.context().setOffline(false)
    await key.send('PUT', '/management/tables/board/realtime', { body: { enabled: false } })
    await page.getByText(/^stale/).waitFor()
    await sql(`insert into board values (7, 'missed', 0)`)
    await key.send('PUT', '/management/tables/board/realtime', { body: { enabled: true } })
    release()
    await page.getByRole('gridcell', { name: 'missed' }).waitFor()
    await page.getByText('live', { exact: true }).waitFor()
    await page.unrouteAll()
  })

  test('of a table with more rows than a stream has, those that are shown are followed', async () => {
    await page.goto(`${at}/data?table=crowd`)
    await page.getByText('live: these rows').waitFor()
    await sql(`update crowd set text = 'seen' where id = 5; update crowd set text = 'far' where id = 900`)
    await page.getByRole('gridcell', { name: 'seen' }).waitFor()
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByText(/^51–100/).waitFor()
    await page.getByText('live: these rows').waitFor()
    await sql(`update crowd set text = 'next' where id = 60`)
    await page.getByRole('gridcell', { name: 'next' }).waitFor()
  })

  test('where a key has several columns, the console says how many of the shown rows are followed', async () => {
    await page.goto(`${at}/data?table=cells`)
    await page.getByText('live: the first 33 of these rows').waitFor()
    await sql(`update cells set text = 'last of them' where x = 33`)
    await page.getByRole('gridcell', { name: 'last of them' }).waitFor()
  })

  test('a tab that nobody sees follows nothing, and shows the rows of now when it is seen again', async () => {
    await page.goto(`${at}/data?table=board`)
    await page.getByText('live', { exact: true }).waitFor()
    const setHidden = (isHidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${isHidden} });
        document.dispatchEvent(new Event('visibilitychange'))`)
    await setHidden(true)
    await page.getByText('paused').waitFor()
    await sql(`update board set text = 'woken' where id = 7`)
    await setHidden(false)
    await page.getByRole('gridcell', { name: 'woken' }).waitFor()
    await page.getByText('live', { exact: true }).waitFor()
  })

  test('a session that ends ends the stream, and rows are followed again after a sign-in', async () => {
    const { db, coherence } = t.service.kernel
    await db.deleteFrom('session').where('userId', '=', root.id).execute()
    await coherence.settle()
    const again = page.getByRole('dialog', { name: 'Your session has ended' })
    await again.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await again.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('live', { exact: true }).waitFor()
    await sql(`update board set text = 'back' where id = 7`)
    await page.getByRole('gridcell', { name: 'back' }).waitFor()
    // Its stream would be opened again while the service ends.
    await page.goto('about:blank')
  })
}
