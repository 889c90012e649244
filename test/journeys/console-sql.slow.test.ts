import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { withoutBrowser } from '#test/browser/chromium.ts'
import {
  expectAccessible,
  expectNoOverflow,
  expectZoomable,
  openConsole,
  requestsOf,
  signIn,
  userOf,
} from '#test/console.ts'
import { withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { PASSWORD } from '#test/harness.ts'

const MARKUP =
  '<img src=/console/stolen onerror="document.title = `run`"><script>document.title = "run"</script>'

if (withoutBrowser !== false) test('the SQL of the console in a browser', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const { t, at, root, visit, enter } = await openConsole({
    config: {
      auth: {
        admin: {
          roles: {
            rows: { gateway: { default: ['gateway.read', 'management.read'] } },
            asker: { gateway: { default: ['gateway.query.read'] } },
          },
        },
      },
    },
  })
  const db = <Row>(text: string) =>
    withClient(t.clientUrl, async (client) => (await client.query(text)).rows as Row[])
  await db(`create table book (id int primary key, title text, "In Stock" boolean default true);
    insert into book select n, 'book ' || n from generate_series(1, 240) n;
    create schema shop; create table shop.sale (id int primary key, amount numeric(20,4))`)

  const fieldOf = (page: Page) => page.getByRole('textbox', { name: 'SQL' })
  const editorOf = (page: Page) => fieldOf(page).and(page.locator('[contenteditable]'))
  const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
  const summary = (page: Page, text: string) => page.getByRole('status').filter({ hasText: text }).waitFor()
  async function write(page: Page, text: string): Promise<void> {
    await fieldOf(page).focus()
    await page.keyboard.press('ControlOrMeta+a')
    await page.keyboard.insertText(text)
  }
  async function run(page: Page, text: string): Promise<void> {
    await write(page, text)
    await page.keyboard.press('ControlOrMeta+Enter')
  }
  const { page } = await enter(root, '/users')

  test('by keyboard alone SQL is run, with every digit and the names of types', async () => {
    await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('q')
    await editorOf(page).waitFor()
    await page.locator('h1:focus').waitFor()
    for (const _ of ['the client', 'the editor']) await page.keyboard.press('Tab')
    await page.keyboard.type(
      'select 1.10 as price, 9007199254740993 as big, now() as at, null as none, array[1, 2] as list',
    )
    await page.keyboard.press('ControlOrMeta+Enter')
    await summary(page, '1 row')
    for (const text of ['1.10', '9007199254740993', '[1,2]'])
      await page.getByRole('cell', { name: text, exact: true }).waitFor()
    assert.deepEqual(await page.locator('th .type').allTextContents(), [
      ...['numeric', 'bigint', 'timestamp with time zone', 'text', 'integer[]'],
    ])
    // The letters of shortcuts are letters here.
    await page.keyboard.type(' gu')
    assert.match(page.url(), /\/console\/sql$/)
    const stored = '[Object.keys(localStorage), Object.keys(sessionStorage), location.href].join()'
    assert.doesNotMatch(String(await page.evaluate(stored)), /select|price/)
    await expectAccessible(page, 'a result')
    await expectZoomable(page, 'a result')
  })

  test('until the editor is loaded one writes in a text area, and goes on where one is', async () => {
    const { page } = await enter(root, '/users')
    const loading = Promise.withResolvers<void>()
    await page.route('**/codemirror-view.js', async (route) => {
      await loading.promise
      await route.continue()
    })
    await page.getByRole('link', { name: 'SQL' }).click()
    await fieldOf(page).and(page.locator('textarea')).focus()
    await page.keyboard.type('select 41 as one')
    await page.keyboard.press('ControlOrMeta+Enter')
    await page.getByRole('cell', { name: '41', exact: true }).waitFor()
    await expectAccessible(page, 'the text area')
    for (const _ of 'one') await page.keyboard.press('Shift+ArrowLeft')
    loading.resolve()
    await page.locator('[contenteditable]:focus').waitFor()
    // At once: keys that are half a second apart, as on a busy machine, are undone one by one.
    await page.keyboard.insertText('two')
    assert.equal(await editorOf(page).textContent(), 'select 41 as two')
    for (const _ of ['two', 'what the text area had']) await page.keyboard.press('ControlOrMeta+z')
    assert.equal(await page.locator('.cm-placeholder').textContent(), 'select …')
    for (const _ of ['what the text area had', 'two']) await page.keyboard.press('ControlOrMeta+y')
    assert.equal(await editorOf(page).textContent(), 'select 41 as two')
    const { page: other } = await enter(root, '/users')
    await other.route('**/codemirror-view.js', (route) => route.abort())
    await other.getByRole('link', { name: 'SQL' }).click()
    await other.getByText('The editor could not be loaded').waitFor()
    await write(other, 'select 43 as three')
    await press(other, 'Run Ctrl Enter')
    await other.getByRole('cell', { name: '43', exact: true }).waitFor()
  })

  test('several statements are one transaction, and rows that were changed are counted', async () => {
    await run(
      page,
      "insert into book values (1001, 'new'); update book set title = 'newer' where id > 1000; select title as t, id as t from book where id = 1001",
    )
    await summary(page, '2 changed · 3 statements')
    await page.getByText('Two columns are called t').waitFor()
    assert.deepEqual(await db('select title from book where id > 1000'), [{ title: 'newer' }])
    await run(page, 'delete from book where id > 1000')
    await page.getByText('Done. The statement has no rows.').waitFor()
    assert.deepEqual(await db('select title from book where id > 1000'), [])
  })

  test('a failure is marked where it is, and the text stays', async () => {
    const text = "select '😀';\n\nselect id, nope from book"
    await run(page, text)
    await page.getByText('column "nope" does not exist').waitFor()
    assert.equal(await page.locator('.wrong').textContent(), 'nope')
    await expectAccessible(page, 'a failure')
    await press(page, 'Go to line 3, column 12')
    await page.keyboard.insertText('title as ')
    await page.locator('.wrong').waitFor({ state: 'detached' })
    assert.match((await editorOf(page).textContent()) ?? '', /id, title as nope from book/)
    await page.route('**/gateway/query', (route) => route.abort())
    await press(page, 'Run Ctrl Enter')
    await page.getByText('The service does not answer').waitFor()
    await page.unroute('**/gateway/query')
    await press(page, 'Run Ctrl Enter')
    await summary(page, '240 rows')
    await page.getByText('Rows 1–100 of 240').waitFor()
    await press(page, 'Next')
    await page.getByRole('cell', { name: 'book 200', exact: true }).waitFor()
  })

  test('what is cancelled ends in the database', async () => {
    const running = () =>
      db(
        `select from pg_stat_activity where datname = current_database() and query like 'update book set title = pg_sleep%' and state = 'active'`,
      )
    await run(page, 'update book set title = pg_sleep(100)::text')
    await eventually(async () => (await running()).length === 1)
    await press(page, 'Cancel')
    await page.getByText('The statement was ended').waitFor()
    await eventually(async () => (await running()).length === 0)
    assert.deepEqual(await db(`select from book where title not like 'book %'`), [])
    // Who leaves does not wait for it either.
    await run(page, 'update book set title = pg_sleep(100)::text')
    await eventually(async () => (await running()).length === 1)
    await page.getByRole('link', { name: 'Users' }).click()
    await eventually(async () => (await running()).length === 0)
    await page.getByRole('link', { name: 'SQL' }).click()
    await editorOf(page).waitFor()
    assert.match((await editorOf(page).textContent()) ?? '', /pg_sleep/, 'what was typed is still there')
  })

  test('a plan is a tree, and a statement that writes is measured with consent only', async () => {
    await write(page, 'select * from book b join shop.sale s on s.id = b.id where amount > 3')
    await press(page, 'Explain')
    await page.getByText('estimates; nothing was run').waitFor()
    await page.locator('.plan li li', { hasText: 'sale' }).first().waitFor()
    await page.getByText('Filter', { exact: true }).first().waitFor()
    await expectAccessible(page, 'a plan')
    await expectZoomable(page, 'a plan')
    await page.getByLabel('Measure (ANALYZE runs the statement)').check()
    await press(page, 'Explain')
    await page.getByText(/execution time/).waitFor()
    for (const [statement, isRun] of [
      ['delete from book where id = 7', false],
      ['with gone as (delete from book where id = 7 returning id) select * from gone', true],
    ] as const) {
      await write(page, `-- a comment\n${statement}`)
      await press(page, 'Explain')
      const dialog = page.getByRole('dialog', { name: 'Run a statement that writes?' })
      await dialog.getByRole('button', { name: isRun ? 'Run it' : 'Cancel' }).click()
      await page.getByRole('button', { name: 'Run Ctrl Enter', exact: true, disabled: false }).waitFor()
      assert.equal((await db('select from book where id = 7')).length, isRun ? 0 : 1)
    }
    // Of two statements the second would be run.
    await write(page, 'select 1; delete from book where id = 8')
    await press(page, 'Explain')
    await page.getByRole('alert').waitFor()
    assert.equal((await db('select from book where id = 8')).length, 1)
    await write(page, 'select wrong from book')
    await press(page, 'Explain')
    await page.getByRole('button', { name: 'Go to line 1, column 8' }).waitFor()
    await page.getByLabel('Measure (ANALYZE runs the statement)').uncheck()
  })

  test('names of the catalogue are offered, quoted where they have to be', async () => {
    await write(page, 'select * from bo')
    await page.keyboard.type('o')
    await page.getByRole('option', { name: 'book' }).waitFor()
    await write(page, 'select * from shop')
    await page.keyboard.type('.')
    await page.getByRole('option', { name: 'sale' }).waitFor()
    await write(page, 'select  from book b where b')
    await page.keyboard.type('.I')
    await page.getByRole('option', { name: 'In Stock' }).waitFor()
    await expectAccessible(page, 'offers')
    await page.getByRole('option', { name: 'In Stock' }).click()
    await eventually(async () => ((await editorOf(page).textContent()) ?? '').endsWith('b."In Stock"'))
  })

  test('results are downloaded as CSV, with formulas as text, and as JSON with every digit', async () => {
    const saved = async (name: string) => {
      const [download] = await Promise.all([page.waitForEvent('download'), press(page, name)])
      return readFile(await download.path(), 'utf8')
    }
    await run(
      page,
      `select '=1+1' as "a,b", -1.50 as n, null as x, '' as e, 'say "hi"' as q, 12345678901234567890 as big`,
    )
    await summary(page, '1 row')
    assert.equal(
      await saved('CSV'),
      `"a,b",n,x,e,q,big\r\n'=1+1,-1.50,,"","say ""hi""",12345678901234567890\r\n`,
    )
    await page.getByLabel('Formulas as text').uncheck()
    assert.match(await saved('CSV'), /^.*\r\n=1\+1,-1\.50/)
    assert.match(await saved('JSON'), /"n": -1\.50,[\s\S]*"big": 12345678901234567890/)
  })

  test('markup, large cells and many columns are text, and nothing runs', async () => {
    const columns = Array.from({ length: 120 }, (_, index) => `${index} as c${index}`)
    await run(
      page,
      `select $$${MARKUP}$$ as "<b>x</b>", 'abc' || chr(8238) || 'def' as bidi, repeat('long ', 210000) as long, ${columns}`,
    )
    await page.getByText(/… and 1,0\d\d,\d{3} more characters/).waitFor()
    await page.getByText('U+202E').waitFor()
    await page.getByText('Columns 1–50 of 123').waitFor()
    assert.equal(await page.locator('td img, td script, th b').count(), 0)
    assert.equal(await page.title(), 'SQL · Gatehouse')
    await expectAccessible(page, 'hostile rows')
    await page.setViewportSize({ width: 360, height: 740 })
    await expectNoOverflow(page, 'a result')
    await page.setViewportSize({ width: 1_280, height: 800 })
  })

  test('what was run is in the memory of the page, until one signs out', async () => {
    const asked = requestsOf(page)
    await page.getByText(/^History: \d+ runs$/).click()
    await page.getByRole('button', { name: 'delete from book where id > 1000' }).click()
    assert.equal(await editorOf(page).textContent(), 'delete from book where id > 1000')
    await expectAccessible(page, 'the history')
    await expectZoomable(page, 'the history')
    assert.deepEqual(asked, [], 'choosing runs nothing')
    await press(page, 'Sign out')
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    const reader = await userOf(t, 'Asker', 'asker')
    await page.getByLabel('Email or username').fill(reader.email)
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await editorOf(page).waitFor()
    assert.equal(await page.getByText('History').count(), 0)
    assert.doesNotMatch((await editorOf(page).textContent()) ?? '', /delete/)
    // This role reads only.
    await run(page, 'delete from book')
    await page.getByText('Only statements that read are possible here').waitFor()
    assert.match((await editorOf(page).textContent()) ?? '', /delete from book/)
    await run(page, 'select count(*) from book')
    await page.getByRole('cell', { name: '239' }).waitFor()
  })

  test('an address runs nothing, and who has no right to SQL sees no such screen', async () => {
    const { page } = await enter(
      await userOf(t, 'Rosa', 'rows'),
      '/sql?client=default&query=delete+from+book',
    )
    await page.getByText('Nothing here').waitFor()
    assert.equal(await page.getByRole('link', { name: 'SQL' }).count(), 0)
    const { page: own } = await visit()
    const asked = requestsOf(own)
    await own.goto(`${at}/sql?client=default&query=delete+from+book&sql=select+1`)
    await signIn(own, root)
    await editorOf(own).waitFor()
    assert.doesNotMatch((await editorOf(own).textContent()) ?? '', /delete|select 1/)
    assert.ok(!asked.some((url) => url.includes('/gateway/')))
    assert.deepEqual(await db('select count(*)::int as n from book'), [{ n: 239 }])
  })
}
