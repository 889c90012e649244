import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, test } from 'node:test'
import type { Page } from 'playwright-core'
import { withoutBrowser } from '#test/browser/chromium.ts'
import { expectAccessible, expectNoOverflow, expectZoomable, openConsole, userOf } from '#test/console.ts'
import { withClient } from '#test/database.ts'
import { installedPrograms, startInstalledServer } from '#test/installed-postgres.ts'

const programs = await installedPrograms()
const skip = withoutBrowser || (programs === undefined && 'needs an installed PostgreSQL with pg_dump')

if (programs === undefined || skip !== false) test('the backups of the console in a browser', { skip })
else await tests(programs)

async function tests(installed: string): Promise<void> {
  const server = await startInstalledServer(installed)
  after(() => server.stop())
  const url = await server.database('shop')
  const { t, root, enter } = await openConsole({
    config: {
      clients: { shop: { driver: 'postgresql', url } },
      backups: { schedules: { nightly: { client: 'shop', cron: '30 3 * * *', keep: 3 } } },
      auth: { admin: { roles: { looker: { operator: ['metrics'] } } } },
    },
  })
  const { db, jobs } = t.service.kernel
  const shop = (text: string) => withClient(url, async (client) => (await client.query(text)).rows)
  const drain = () => jobs.drain(t.service.handlers)
  const trail = async () =>
    (await db.selectFrom('auditEvent').select(['action', 'actorId']).orderBy('id').execute()).filter(
      ({ action }) => /^(backup|restore)\./.test(action),
    )
  const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
  const row = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text })
  await shop(
    'create table city (id int primary key, name text); insert into city select n, $$c$$ || n from generate_series(1, 1000) n',
  )
  const { page } = await enter(root, '/backups')

  test('by keyboard alone a client is backed up, with its progress, and the trail names the person', async () => {
    await page.getByText('No backup yet.').waitFor()
    await page.getByText('30 3 * * *').waitFor()
    await expectAccessible(page, 'no backup')
    await page.getByRole('button', { name: 'Back up' }).focus()
    await page.keyboard.press('Enter')
    await page.locator('dialog input:focus').waitFor()
    await page.keyboard.type('before the <b>move</b>')
    await page.getByLabel('Client', { exact: true }).and(page.locator('dialog select')).selectOption('shop')
    await expectAccessible(page, 'the form')
    await expectZoomable(page, 'the form')
    await page.getByLabel('Label').press('Enter')
    await page.getByText('The backup of shop has begun').waitFor()
    await row(page, 'before the <b>move</b>').getByText('pending').waitFor()
    await page.getByRole('progressbar').waitFor()
    await expectAccessible(page, 'a backup that waits')
    await expectZoomable(page, 'a backup that waits')
    await drain()
    await row(page, 'before the <b>move</b>').getByText('completed').waitFor()
    assert.deepEqual(await trail(), [{ action: 'backup.requested', actorId: root.id }])
  })

  test('a second backup at once is refused, and its form stays; a waiting one is cancelled', async () => {
    const ask = async (label: string) => {
      await press(page, 'Back up')
      await page.getByLabel('Client', { exact: true }).and(page.locator('dialog select')).selectOption('shop')
      await page.getByLabel('Label').fill(label)
      await page.getByRole('dialog').getByRole('button', { name: 'Back up' }).click()
    }
    await ask('first')
    await row(page, 'first').getByText('pending').waitFor()
    await ask('second')
    await page.getByRole('dialog').getByRole('alert').waitFor()
    assert.equal(await page.getByLabel('Label').inputValue(), 'second')
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    await row(page, 'first').getByRole('button', { name: 'Cancel' }).click()
    await row(page, 'first').getByText('cancelled').waitFor()
    assert.deepEqual((await trail()).at(-1), { action: 'backup.cancelled', actorId: root.id })
  })

  test('the file of a backup is downloaded as it is', async () => {
    const { location } = await db
      .selectFrom('backupJob')
      .select('location')
      .where('status', '=', 'completed')
      .executeTakeFirstOrThrow()
    const [download] = await Promise.all([page.waitForEvent('download'), press(page, 'Download')])
    assert.equal(download.suggestedFilename(), location?.split('/').at(-1))
    assert.deepEqual(await readFile(await download.path()), await readFile(location ?? ''))
    assert.deepEqual((await trail()).at(-1), { action: 'backup.downloaded', actorId: root.id })
  })

  test('a restore says what is lost and takes the name of the client', async () => {
    await shop('delete from city where id > 10')
    await press(page, 'Restore')
    const dialog = page.getByRole('dialog', { name: 'Restore into shop' })
    await dialog.getByText(/All that was written to shop since/).waitFor()
    await expectAccessible(page, 'the restore')
    await expectZoomable(page, 'the restore')
    const button = dialog.getByRole('button', { name: 'Restore' })
    await dialog.getByLabel('Type shop to confirm').fill('sho')
    assert.ok(await button.isDisabled())
    await dialog.getByLabel('Type shop to confirm').fill('shop')
    await page.route('**/restore', (route) => route.abort())
    await button.click()
    await dialog.getByText('The service does not answer').waitFor()
    assert.equal(await dialog.getByLabel('Type shop to confirm').inputValue(), 'shop')
    await page.unroute('**/restore')
    await button.click()
    await page.getByText('The restore of shop has begun').waitFor()
    await drain()
    await page.getByRole('cell', { name: /^restore dump/ }).waitFor()
    await page.getByRole('progressbar').waitFor({ state: 'detached' })
    assert.deepEqual(await shop('select count(*)::int as n from city'), [{ n: 1_000 }])
    assert.deepEqual((await trail()).at(-1), { action: 'restore.requested', actorId: root.id })
  })

  test('the list is filtered by its address, and a deletion names the file', async () => {
    await page.getByLabel('State').selectOption('completed')
    await page.getByLabel('Kind').selectOption('backup')
    await page.waitForURL(/status=completed.*type=backup|type=backup.*status=completed/)
    await page.getByText('1–1 of 1').waitFor()
    const { page: colleague } = await enter(
      root,
      new URL(page.url()).pathname.replace('/console', '') + new URL(page.url()).search,
    )
    await colleague.getByText('1–1 of 1').waitFor()
    await press(page, 'Delete')
    const dialog = page.getByRole('dialog')
    await dialog.getByText(/\.dump is deleted, and cannot be restored/).waitFor()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No backup matches.').waitFor()
    assert.deepEqual((await trail()).at(-1), { action: 'backup.deleted', actorId: root.id })
    await page.setViewportSize({ width: 360, height: 740 })
    await expectNoOverflow(page, 'the backups')
  })

  test('who may not make backups sees no such screen', async () => {
    const { page } = await enter(await userOf(t, 'Lola', 'looker'), '/backups')
    await page.getByText('Nothing here').waitFor()
    assert.equal(await page.getByRole('link', { name: 'Backups' }).count(), 0)
  })
}
