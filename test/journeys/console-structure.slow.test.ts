import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { withoutBrowser } from '#test/browser/chromium.ts'
import { expectAccessible, expectNoOverflow, expectZoomable, openConsole, userOf } from '#test/console.ts'
import { withClient } from '#test/database.ts'

if (withoutBrowser !== false) test('the structure of a table in a browser', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const { t, at, root, enter } = await openConsole({
    config: {
      auth: { admin: { roles: { reader: { gateway: { default: ['management.read', 'gateway.read'] } } } } },
    },
  })
  const sql = (text: string) => withClient(t.clientUrl, async (client) => (await client.query(text)).rows)
  // Before the service reads the catalogue.
  await sql(`create table authors (id int primary key);
    create table words (id int primary key, word text); insert into words values (1, 'one');
    create table notes (id int primary key, text text); create view long_notes as select text from notes;
    create table "<b>\u202eevil</b>.""x" (id int primary key, "<img src=x onerror=alert(1)>" text default '<script>')`)
  const { page } = await enter(root)

  const open = async (address: string, one: Page = page) => {
    await one.goto(at + address)
    await one.getByRole('heading', { level: 1 }).waitFor()
  }
  const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
  const dialog = page.getByRole('dialog')
  const columnsOf = async (table: string) =>
    (
      await sql(`select column_name, data_type, is_nullable, column_default from information_schema.columns
        where table_name = '${table}' order by ordinal_position`)
    ).map((row) => Object.values(row).join(' '))
  /** The last act on the structure. */
  const expectTold = async (target: string, operation: string) => {
    const last = await t.service.kernel.db
      .selectFrom('auditEvent')
      .select(['actorId', 'targetId', 'details'])
      .where('action', '=', 'schema.changed')
      .orderBy('id', 'desc')
      .executeTakeFirst()
    const expected = { actorId: root.id, targetId: `public.${target}`, details: { operation } }
    assert.deepEqual(last, expected)
  }

  test('by keyboard alone a table is made, with a key, a default and a reference', async () => {
    await open('/data')
    await page.getByRole('link', { name: 'New table' }).focus()
    await page.keyboard.press('Enter')
    await page.locator('input:focus').waitFor()
    await page.keyboard.type('books')
    const type = async (label: string, text: string) => {
      await page.getByLabel(label, { exact: true }).last().focus()
      await page.keyboard.press('ControlOrMeta+a')
      await page.keyboard.type(text)
    }
    await type('Name', 'id')
    await type('Type', 'uuid')
    await type('Default', 'gen_random_uuid()')
    await page.getByLabel('Primary key').focus()
    await page.keyboard.press('Space')
    await page.getByRole('button', { name: 'Another column' }).focus()
    await page.keyboard.press('Enter')
    await type('Name', 'author_id')
    await type('Type', 'integer')
    await type('References', 'authors.id')
    await expectAccessible(page, 'the form of a new table')
    await expectZoomable(page, 'the form of a new table')
    await page.keyboard.press('Enter')
    await page.getByText('books was created').waitFor()
    await page.waitForURL(/table=books.*view=structure/)
    assert.deepEqual(await columnsOf('books'), ['id uuid NO gen_random_uuid()', 'author_id integer YES '])
    await expectTold('books', 'create_table')
    await page.getByRole('link', { name: 'authors.id' }).waitFor()
    await expectAccessible(page, 'the structure')
    await expectZoomable(page, 'the structure')
  })

  test('columns are added, changed as a whole and dropped, and the trail names the person', async () => {
    await open('/data?table=books&view=structure')
    await press('Add column')
    await dialog.getByLabel('Name').fill('pages')
    await dialog.getByLabel('Type').fill('text')
    await expectAccessible(page, 'the dialog')
    await expectZoomable(page, 'the dialog')
    await dialog.getByRole('button', { name: 'Add column' }).click()
    await page.getByText('pages was added').waitFor()
    await press('Change pages')
    await dialog.getByLabel('Name').fill('length')
    await dialog.getByLabel('Type').fill('integer')
    await dialog.getByLabel('Default').fill('0')
    await dialog.getByLabel('Not null').check()
    await dialog.getByRole('button', { name: 'Change column' }).click()
    await page.getByText('length was changed').waitFor()
    assert.deepEqual((await columnsOf('books')).at(-1), 'length integer NO 0')
    await expectTold('books', 'edit_table')
    await press('Drop length')
    await dialog.getByText('dropped with its values').waitFor()
    await dialog.getByRole('button', { name: 'Drop the column' }).click()
    await page.getByText('length was dropped').waitFor()
    assert.equal((await columnsOf('books')).length, 2)
    await expectTold('books.length', 'drop_column')
  })

  test('a change that is refused leaves the form as it was, and the table too', async () => {
    await open('/data?table=words&view=structure')
    await press('Change word')
    await dialog.getByLabel('Name').fill('number')
    await dialog.getByLabel('Type').fill('integer')
    await dialog.getByRole('button', { name: 'Change column' }).click()
    await dialog.getByRole('alert').waitFor()
    assert.equal(await dialog.getByLabel('Name').inputValue(), 'number')
    assert.equal(await dialog.getByLabel('Type').inputValue(), 'integer')
    assert.deepEqual((await columnsOf('words')).at(-1), 'word text YES ')
    await page.route('**/management/tables/words', (route) => route.abort())
    await dialog.getByLabel('Type').fill('varchar(20)')
    await dialog.getByRole('button', { name: 'Change column' }).click()
    await dialog.getByText('The service does not answer.').waitFor()
    await page.unroute('**/management/tables/words')
    await dialog.getByRole('button', { name: 'Change column' }).click()
    await page.getByText('number was changed').waitFor()
    assert.deepEqual((await columnsOf('words')).at(-1), 'number character varying YES ')
  })

  test('what depends on a column is named before it goes too', async () => {
    await open('/data?table=notes&view=structure')
    await press('Drop text')
    await dialog.getByRole('button', { name: 'Drop the column' }).click()
    await dialog.getByText('view long_notes').waitFor()
    assert.equal((await columnsOf('notes')).length, 2)
    await dialog.getByLabel('Drop them too').check()
    await dialog.getByRole('button', { name: 'Drop the column' }).click()
    await page.getByText('text was dropped').waitFor()
    assert.deepEqual(await sql(`select from pg_class where relname = 'long_notes'`), [])
  })

  test('a table is renamed, becomes live, and is dropped', async () => {
    await open('/data?table=words&view=structure')
    await press('Rename table')
    await dialog.getByLabel('New name').fill('numbers')
    await dialog.getByRole('button', { name: 'Rename' }).click()
    await page.getByText('words is numbers now').waitFor()
    await page.getByRole('heading', { name: 'numbers', level: 1 }).waitFor()
    await page.getByRole('navigation', { name: 'Tables' }).getByText('numbers').waitFor()
    await press('Make it live')
    await page.getByText('numbers is live').waitFor()
    await expectTold('numbers', 'realtime')
    await press('End live rows')
    await page.getByText('numbers is no longer live').waitFor()
    await press('Drop table')
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    assert.equal((await columnsOf('numbers')).length, 2)
    await press('Drop table')
    await dialog.getByRole('button', { name: 'Drop the table' }).click()
    await page.getByText('numbers was dropped').waitFor()
    await expectTold('numbers', 'drop_table')
    assert.deepEqual(await columnsOf('numbers'), [])
    await page.getByText('Choose a table.').waitFor()
  })

  test('indexes are listed, made and dropped', async () => {
    await open('/data?table=books&view=indexes')
    await page.getByRole('cell', { name: 'of a constraint' }).waitFor()
    await press('New index')
    await dialog.getByLabel('author_id').check()
    await dialog.getByLabel('id', { exact: true }).check()
    await dialog.getByLabel('Unique').check()
    await expectAccessible(page, 'the form of an index')
    await expectZoomable(page, 'the form of an index')
    await dialog.getByRole('button', { name: 'Create index' }).click()
    await page.getByText('books_author_id_id_idx was created').waitFor()
    await expectTold('books_author_id_id_idx', 'create_index')
    await press('Drop books_author_id_id_idx')
    await dialog.getByRole('button', { name: 'Drop the index' }).click()
    await page.getByText('books_author_id_id_idx was dropped').waitFor()
    assert.deepEqual(await sql(`select from pg_class where relname = 'books_author_id_id_idx'`), [])
    await expectTold('books_author_id_id_idx', 'drop_index')
  })

  test('who may look finds no button, and a hostile structure is text and fits a phone', async () => {
    const rea = await userOf(t, 'Rea', 'reader')
    const { page: other } = await enter(rea, '', { viewport: { width: 360, height: 740 } })
    await open('/data?table=books&view=structure', other)
    await other.getByRole('cell', { name: 'author_id', exact: true }).waitFor()
    // It comes last, and the button beside it with it.
    await other.getByRole('region', { name: 'Live rows' }).getByText('off', { exact: true }).waitFor()
    const buttons = await other.locator('.views').getByRole('button').allTextContents()
    assert.deepEqual(buttons, [])
    assert.equal(await other.getByRole('link', { name: 'New table' }).count(), 0)
    await expectNoOverflow(other, 'the structure')
    const name = encodeURIComponent('<b>\u202eevil</b>."x')
    for (const view of ['structure', 'indexes']) {
      await open(`/data?table=${name}&view=${view}`, other)
      await other.getByRole('cell', { name: '_pkey', exact: false }).first().waitFor()
      assert.equal(await other.locator('.views :is(b, img, script)').count(), 0)
      await expectNoOverflow(other, view)
    }
  })
}
