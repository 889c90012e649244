import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withoutBrowser } from '#test/browser/chromium.ts'
import { untilLoaded } from '#test/browser/loaded.ts'
import { expectAccessible, openConsole, requestsOf, userOf } from '#test/console.ts'
import { withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'

/** Markup that would run, and what would make it look like something else. */
const MARKUP =
  '<img src=/console/stolen onerror="document.title = `run`"><script>document.title = "run"</script>'
const BIDI = 'abc\u202e\u2066fed\u200b'
const LINK = 'javascript:document.title="run"'

if (withoutBrowser !== false) test('hostile content in the console', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const { t, at, root, enter } = await openConsole()
  const { db, coherence } = t.service.kernel

  async function visitor(path: string) {
    const visit = await enter(root, path)
    const asked = requestsOf(visit.page)
    visit.page.on('dialog', (dialog) => assert.fail(dialog.message()))
    return { ...visit, asked }
  }

  test('names of users with markup and bidirectional characters are text', async () => {
    const ada = await userOf(t, 'Ada', 'user')
    // Older rows and imports may have names that a sign-up refuses.
    await db
      .updateTable('user')
      .set({ name: `${MARKUP}${BIDI}`, image: LINK })
      .where('id', '=', ada.id)
      .execute()
    await coherence.settle()
    const { page, asked } = await visitor('/users')
    await page.getByRole('link', { name: MARKUP.slice(0, 20) }).click()
    await page.getByRole('heading', { level: 1, name: MARKUP.slice(0, 20) }).waitFor()
    // It follows the heading.
    await eventually(async () => (await page.title()).startsWith('<img'))
    await untilLoaded(page)
    assert.equal(await page.locator('img, main script').count(), 0)
    await expectAccessible(page, 'a hostile user')
    assert.ok(!asked.some((url) => url.includes('stolen')))
    // One agrees to what one reads.
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').locator('.code-point', { hasText: 'U+202E' }).waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
  })

  test('rows with markup, long texts, big numbers and bidirectional characters are text, with every digit', async () => {
    await withClient(t.clientUrl, (client) =>
      client.query(
        `create table "hostile <b>" (id int primary key, "a <i>x" text, big numeric, large bigint, note text, data jsonb);
         insert into "hostile <b>" values (1, $$${MARKUP}$$, 12345678901234567890.123456789012345678, 9007199254740993, repeat('long ', 210000), '{"n": 12345678901234567890}'),
           (2, $$${BIDI}$$, null, null, '', null), (3, $$${LINK}$$, 1.10, 3, 'line' || chr(10) || 'break', null)`,
      ),
    )
    const { page } = await visitor('/data')
    await page.getByRole('link', { name: 'hostile <b>' }).click()
    await page.getByText('12345678901234567890.123456789012345678').waitFor()
    await page.getByText('9007199254740993').waitFor()
    await page.getByText('{"n": 12345678901234567890}').waitFor()
    await page.getByText('1.10', { exact: true }).waitFor()
    await page.getByText(/… and 1,0\d\d,\d{3} more characters/).waitFor()
    await page.getByText(LINK).waitFor()
    assert.deepEqual(await page.locator('.code-point').allTextContents(), ['U+202E', 'U+2066', 'U+200B'])
    assert.equal(await page.locator('td img, td script, td a').count(), 0)
    assert.notEqual(await page.title(), 'run')
    await page.getByRole('button', { name: 'a <i>x' }).click()
    await page.waitForURL(/sort=a/)
    await page.getByLabel('Where').selectOption('large')
    await page.getByRole('searchbox').fill('9007199254740993')
    await page.getByRole('button', { name: 'Add filter' }).click()
    await page.getByText('1–1 of').waitFor()
    await page.getByRole('button', { name: 'Remove the filter on large' }).click()
    await page.getByText('1–3 of').waitFor()
    await expectAccessible(page, 'the grid')
  })

  test('a table whose name reads like that of another one is not mistaken for it', async () => {
    const names = ['q', '"""q"""', '"a.b"', '"public.q"'] as const
    for (const name of names)
      await withClient(t.clientUrl, (client) =>
        client.query(
          `create table ${name} (id int primary key, t text); insert into ${name} values (1, $$in ${name}$$)`,
        ),
      )
    const { page } = await visitor('/data')
    for (const name of names.slice(1)) {
      const link = name.slice(1, -1).replaceAll('""', '"')
      await page.goto(`${at}/data?table=${encodeURIComponent(link)}`)
      await page.getByRole('gridcell', { name: `in ${name}`, exact: true }).dblclick()
      await page.getByLabel('New value of t').fill('mine')
      await page.keyboard.press('Enter')
      await page.getByRole('gridcell', { name: 'mine', exact: true }).waitFor()
    }
    for (const name of names) {
      const { rows } = await withClient(t.clientUrl, (client) => client.query(`select t from ${name}`))
      assert.deepEqual(rows, [{ t: name === 'q' ? 'in q' : 'mine' }], name)
    }
  })

  test('a table of 1,000 columns is shown in parts', async () => {
    const columns = Array.from({ length: 999 }, (_, index) => `c${index} int default ${index}`)
    await withClient(t.clientUrl, (client) =>
      client.query(
        `create table wide (id int primary key, ${columns}); insert into wide (id) select generate_series(1, 120)`,
      ),
    )
    const { page } = await visitor('/data?table=wide')
    await page.getByText('Columns 1–50 of 1,000').waitFor()
    await page.getByRole('button', { name: 'Right' }).click()
    await page.getByText('Columns 51–100 of 1,000').waitFor()
    await page.getByRole('columnheader', { name: 'c60' }).waitFor()
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByText(/^51–100 of/).waitFor()
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByText(/^101–120 of/).waitFor()
    assert.ok(await page.getByRole('button', { name: 'Next' }).isDisabled())
  })

  test('an address with nonsense in it shows a list or says what is wrong', async () => {
    for (const path of [
      '/users?offset=-5&sort=nothing&filter=%3Cb%3E',
      '/users?filter=constructor',
      '/users/not-an-id',
      '/audit?from=nothing&cursor=x',
      '/data?client=none&table=%3Cb%3E&where=[1,{}]&offset=x&columns=-3',
      '/data?table=wide&where=%5B%5B%22c1%22,%22constructor%22,%221%22%5D%5D',
      '/__proto__',
    ]) {
      const { page } = await visitor(path)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await untilLoaded(page)
    }
  })

  test('an address alone makes no database count', async () => {
    const { page, asked } = await visitor('/users?count=exact')
    const bodies: string[] = []
    page.on('request', (request) => void bodies.push(request.postData() ?? ''))
    await page.getByRole('cell', { name: root.email }).waitFor()
    await page.getByRole('link', { name: 'Data' }).click()
    await page.goto(`${page.url()}?table=wide&count=exact`)
    await page.getByText(/^1–50 of/).waitFor()
    assert.ok(![...asked, ...bodies].some((text) => text.includes('exact') && !text.includes('/console/')))
    await page.getByRole('button', { name: 'Count exactly' }).click()
    await page.getByText('1–50 of 120', { exact: true }).waitFor()
  })

  test('settings and the trail are shown, secrets masked', async () => {
    const { page } = await visitor('/settings')
    await page.getByRole('cell', { name: 'session.expires_in', exact: true }).waitFor()
    await page.getByRole('searchbox').fill('console.enabled')
    await page.getByText('1 setting', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'Audit' }).click()
    await page.getByRole('cell', { name: 'user.signed_in' }).first().waitFor()
  })
}
