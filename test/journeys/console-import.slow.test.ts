import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withoutBrowser } from '#test/browser/chromium.ts'
import { expectAccessible, expectNoOverflow, expectZoomable, openConsole, userOf } from '#test/console.ts'
import { withClient } from '#test/database.ts'

if (withoutBrowser !== false) test('an import in a browser', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const { t, at, root, enter } = await openConsole({
    config: {
      auth: { admin: { roles: { reader: { gateway: { default: ['management.read', 'gateway.read'] } } } } },
    },
  })
  const sql = (text: string) => withClient(t.clientUrl, async (client) => (await client.query(text)).rows)
  // Before the service reads the catalogue.
  for (const name of ['words', 'strict', 'numbers', 'many', 'stopped'])
    await sql(`create table ${name} (id int primary key, word text, n numeric)`)
  await sql('create table odd (id int, "<b>bold</b>" text)')
  const WIDE = ['id', ...Array.from({ length: 198 }, (_, index) => `c${index}`), 'constructor']
  await sql(`create table wide (${WIDE.map((name) => `${name} int`)})`)
  const { page } = await enter(root)
  const open = async (table: string) => {
    await page.goto(`${at}/data?table=${table}&view=import`)
    await page.getByLabel('File').waitFor()
  }
  const choose = async (name: string, content: string) => {
    await page
      .getByLabel('File')
      .setInputFiles({ name, mimeType: 'application/octet-stream', buffer: Buffer.from(content) })
    await page.getByRole('region', { name: 'First rows' }).waitFor()
  }
  const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
  const whole = () => page.getByLabel('All or nothing')

  test('a CSV file is previewed, its columns are mapped, and its rows stored', async () => {
    await open('words')
    const file = '\ufeffid;Wort;more;n\r\n1;"a ""b""\r\nc";x;12345678901234567890.10\r\n2;;y;\r\n3;"";z;1\r\n'
    await choose('words.csv', file)
    await page.getByLabel('Wort').selectOption('word')
    assert.equal(await page.getByLabel('more').inputValue(), '')
    await expectAccessible(page, 'the form of an import')
    await expectZoomable(page, 'the form of an import')
    await press('Import')
    await page.getByText('3 rows stored.').waitFor()
    await page.getByRole('link', { name: 'Show the rows' }).waitFor()
    assert.deepEqual(await sql('select id, word, n::text from words order by id'), [
      { id: 1, word: 'a "b"\r\nc', n: '12345678901234567890.10' },
      { id: 2, word: null, n: null },
      { id: 3, word: '', n: '1' },
    ])
  })

  test('all or nothing: a bad row is named with its column, and nothing is written', async () => {
    await open('strict')
    await choose('rows.csv', 'id,word,n\n1,one,1\n2,two,zwei\n')
    await page.getByRole('button', { name: 'Import' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('Nothing was written: 1 row cannot be stored.').waitFor()
    await page.getByRole('row', { name: /^2 n / }).waitFor()
    await expectAccessible(page, 'the errors of an import')
    await expectZoomable(page, 'the errors of an import')
    assert.deepEqual(await sql('select * from strict'), [])
    await whole().uncheck()
    await press('Import')
    await page.getByText('1 row stored.').waitFor()
    assert.deepEqual(await sql('select id from strict'), [{ id: 1 }])
  })

  test('JSON keeps every digit, and rows that exist already are skipped', async () => {
    await sql(`insert into numbers values (1, 'old', 1)`)
    await open('numbers')
    await choose(
      'rows.json',
      '[{"id": 1, "word": "new"},\n {"id": 2, "word": "}[\\"", "n": 0.10000000000000000001}]',
    )
    await page.getByRole('cell', { name: '0.10000000000000000001' }).waitFor()
    await page.getByLabel('Rows that exist already').selectOption('are skipped, by id')
    await press('Import')
    await page.getByText('1 row existed already.').waitFor()
    assert.deepEqual(await sql('select id, word, n::text from numbers order by id'), [
      { id: 1, word: 'old', n: '1' },
      { id: 2, word: '}["', n: '0.10000000000000000001' },
    ])
  })

  test('a file of several batches names those that are written when one fails, and goes on from there', async () => {
    await open('many')
    const rows = Array.from({ length: 12_000 }, (_, index) => `${index + 1},w,1`)
    await choose('many.csv', `id,word,n\n${rows.join('\n')}`)
    await whole().uncheck()
    let calls = 0
    const fails = () => [2, 3].includes(++calls)
    await page.route('**/gateway/import?*', (route) => (fails() ? route.abort() : route.continue()))
    await press('Import')
    await page.getByText('Failed after 1 batch: 5,000 rows stored.').waitFor()
    await page.getByText('Whether the rows 5,001–10,000 are stored is not known.').waitFor()
    assert.deepEqual(await sql('select count(*)::int as n from many'), [{ n: 5_000 }])
    await press('Go on from row 5,001')
    await page.getByText('Failed after 0 batches: 0 rows stored.').waitFor()
    // Batches have other bounds by that.
    await page.getByLabel('An empty cell is NULL').uncheck()
    await press('Go on from row 5,001')
    await page.getByText('7,000 rows stored.').waitFor()
    assert.deepEqual(await sql('select count(*)::int as n from many'), [{ n: 12_000 }])
  })

  test('it stops between two batches, and says which are written', async () => {
    await open('stopped')
    const rows = Array.from({ length: 12_000 }, (_, index) => `${index + 1},w,1`)
    await choose('many.csv', `id,word,n\n${rows.join('\n')}`)
    await whole().uncheck()
    const [holding, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    await page.route('**/gateway/import?*', async (route) => {
      holding.resolve()
      await held.promise
      await route.continue()
    })
    await press('Import')
    await holding.promise
    await press('Stop')
    held.resolve()
    await page.getByText('Stopped after 1 batch: 5,000 rows stored.').waitFor()
    assert.deepEqual(await sql('select count(*)::int as n from stopped'), [{ n: 5_000 }])
    await page.unroute('**/gateway/import?*')
  })

  test('a file of many columns is shown at once, and one of more than a table has says so', async () => {
    await open('wide')
    await choose('wide.csv', `${WIDE.slice(0, -1)},toString\n${WIDE.map((_, index) => index)}\n`)
    // Each choice of each field at once would be 40,000 elements.
    assert.ok((await page.locator('option').count()) < 5_000)
    await page.getByLabel('c7', { exact: true }).focus()
    await page.getByLabel('c7', { exact: true }).selectOption('constructor')
    assert.equal(await page.getByLabel('toString').inputValue(), '')
    await whole().uncheck()
    await press('Import')
    await page.getByText('1 row stored.').waitFor()
    assert.deepEqual(await sql('select id, c6, c7, constructor from wide'), [
      { id: 0, c6: 7, c7: null, constructor: 8 },
    ])
    const many = Array.from({ length: 50_000 }, (_, index) => `c${index}`)
    await page
      .getByLabel('File')
      .setInputFiles({ name: 'x.csv', mimeType: 'text/csv', buffer: Buffer.from(`${many}\n${many}\n`) })
    await page.getByText('The file has 50,000 columns, and a table at most 1,600.').waitFor()
  })

  test('a file that is none says so, hostile names are text, and who may not write has no tab', async () => {
    await open('odd')
    await choose('odd.csv', 'id,<b>bold</b>\n1,<script>alert(1)</script>\n')
    await page.getByRole('cell', { name: '<script>' }).waitFor()
    assert.equal(await page.locator('.views :is(b, script)').count(), 0)
    await page.setViewportSize({ width: 360, height: 740 })
    await expectNoOverflow(page, 'an import')
    await page.getByLabel('File').setInputFiles({
      name: 'x.csv',
      mimeType: 'text/csv',
      buffer: Buffer.from([0x69, 0x64, 0x0a, 0xff, 0xfe]),
    })
    await page.getByText('The file is not text in UTF-8.').waitFor()
    const rea = await userOf(t, 'Rea', 'reader')
    const { page: other } = await enter(rea, '/data?table=words&view=import')
    await other.getByRole('link', { name: 'Structure' }).waitFor()
    assert.equal(await other.getByRole('link', { name: 'Import' }).count(), 0)
  })
}
