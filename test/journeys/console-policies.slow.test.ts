import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { withoutBrowser } from '#test/browser/chromium.ts'
import { expectAccessible, expectNoOverflow, expectZoomable, openConsole, userOf } from '#test/console.ts'
import { actor } from '#test/harness.ts'
import { createSecuredClient } from '#test/secured-client.ts'

if (withoutBrowser !== false) test('policies of a table in a browser', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const { roles, sql, settings, drop } = await createSecuredClient()
  const { t, at, root, enter } = await openConsole({
    config: {
      auth: { admin: { roles: { reader: { gateway: { app: ['management.read', 'gateway.read'] } } } } },
      clients: { app: settings },
    },
  })
  after(async () => {
    await t.stop()
    await drop()
  })
  await sql(`create table todo (id int primary key, text text, user_id uuid, shared boolean default false)`)
  const { page } = await enter(root)
  const ada = await t.signUp('Ada')
  const dialog = page.getByRole('dialog')
  const open = async (table = 'todo') => {
    await page.goto(`${at}/data?client=app&table=${table}&view=policies`)
    await page.getByRole('heading', { name: 'Policies' }).waitFor()
  }
  const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
  const policies = async () =>
    (await sql(`select polname from pg_policy where polrelid = 'todo'::regclass order by 1`)).length
  const acts = (action: 'schema.changed' | 'rows.seen_as') =>
    t.service.kernel.db
      .selectFrom('auditEvent')
      .select(['actorId', 'targetId', 'details'])
      .where('action', '=', action)
      .orderBy('id', 'desc')
      .execute()

  test('a preset is added, said beforehand, and removed, and the trail names the person', async () => {
    await open()
    await page.getByText('row-level security is off', { exact: true }).waitFor()
    await press('Add policy')
    await dialog.getByText('whose user_id is their id').waitFor()
    await expectAccessible(page, 'the form of a policy')
    await expectZoomable(page, 'the form of a policy')
    await dialog.getByRole('button', { name: 'Add the policy' }).click()
    await page.getByText('row-level security is on', { exact: true }).waitFor()
    await page.getByText('select, insert, update, delete').waitFor()
    assert.ok((await policies()) > 0)
    const [told] = await acts('schema.changed')
    assert.deepEqual(
      [told?.actorId, told?.targetId, told?.details],
      [root.id, 'public.todo', { operation: 'row_level_security' }],
    )
    await expectAccessible(page, 'the policies')
    await expectZoomable(page, 'the policies')
  })

  test('by keyboard alone one sees as a user, and the trail has the look', async () => {
    const key = await t.key(['gateway.*'], { client_name: 'app' })
    const app = actor(t.url, {
      apikey: key.apiKey,
      'x-service-client': 'app',
      authorization: `Bearer ${ada.token}`,
    })
    await app.post('/gateway/insert', {
      table_name: 'todo',
      insert_body: { id: 1, text: '<b>of ada\u202e</b>' },
    })
    await sql(`insert into todo values (2, 'of nobody', null)`)
    await open()
    await page.getByLabel('Id or email').focus()
    await page.keyboard.type(ada.email)
    await page.keyboard.press('Enter')
    await page.getByRole('cell', { name: '<b>of ada' }).waitFor()
    assert.equal(await page.getByRole('cell', { name: 'of nobody' }).count(), 0)
    assert.equal(await page.locator('.views b').count(), 0)
    const [seen] = await acts('rows.seen_as')
    assert.deepEqual(
      [seen?.actorId, seen?.targetId, seen?.details],
      [root.id, ada.id, { table: 'public.todo' }],
    )
    await expectAccessible(page, 'the rows of a user')
    await expectZoomable(page, 'the rows of a user')
    await page.getByLabel('Who').selectOption('A visitor without a session')
    await press('See the rows')
    await page.getByText('permission_denied').waitFor()
    await page.getByLabel('Who').selectOption('Anyone who is signed in')
    await press('See the rows')
    await page.getByText('0 rows').waitFor()
    await page.getByLabel('Who').selectOption('A user')
    await page.getByLabel('Id or email').fill('nobody@example.com')
    await press('See the rows')
    await page.getByText('No user has this address.').waitFor()
    assert.equal(await page.getByLabel('Id or email').inputValue(), 'nobody@example.com')
  })

  test('a policy by expression is refused with its reason, then set, and shows rows to visitors', async () => {
    await open()
    await press('Add policy')
    await dialog.getByLabel('Policy').selectOption('By an expression')
    await dialog.getByLabel('Name').fill('shared_tasks')
    await dialog.getByLabel(roles.anon).check()
    await dialog.getByLabel('Rows that are there').fill('pg_sleep(1) is null')
    await dialog.getByRole('button', { name: 'Add the policy' }).click()
    await dialog.getByText('invalid_policy').waitFor()
    assert.equal(await dialog.getByLabel('Name').inputValue(), 'shared_tasks')
    await dialog.getByLabel('Rows that are there').fill('shared')
    await dialog.getByText(`${roles.anon}: select rows where shared.`).waitFor()
    await dialog.getByRole('button', { name: 'Add the policy' }).click()
    await page.getByText('shared_tasks was added').waitFor()
    await sql('update todo set shared = true where id = 2')
    await page.getByLabel('Who').selectOption('A visitor without a session')
    await press('See the rows')
    await page.getByRole('cell', { name: 'of nobody' }).waitFor()
  })

  test('policies that somebody else has changed meanwhile are not overwritten', async () => {
    await open()
    const changed = await root.send('PUT', '/management/tables/todo/row-level-security', {
      body: { enabled: true, policies: [{ preset: 'owner' }] },
      headers: { 'x-service-session': '1', 'x-service-client': 'app' },
    })
    assert.equal(changed.status, 200, changed.text)
    const before = await policies()
    await press('Remove owner by user_id')
    await dialog.getByText('No longer: Signed-in users read').waitFor()
    await dialog.getByRole('button', { name: 'Remove the policy' }).click()
    await page.getByText('The policies have changed in the meantime').waitFor()
    assert.equal(await policies(), before)
    await open()
    await press('Turn off')
    await dialog.getByText('it is closed to them, not open').waitFor()
    await dialog.getByRole('button', { name: 'Turn it off' }).click()
    await page.getByText('row-level security is off', { exact: true }).waitFor()
    assert.equal(await policies(), 0)
  })

  test('without the right there is no button and no look, and it fits a phone', async () => {
    const rea = await userOf(t, 'Rea', 'reader')
    const { page: other } = await enter(rea, '/data?client=app&table=todo&view=policies', {
      viewport: { width: 360, height: 740 },
    })
    await other.getByRole('heading', { name: 'Policies' }).waitFor()
    assert.deepEqual(await other.locator('.views').getByRole('button').allTextContents(), [])
    assert.equal(await other.getByRole('heading', { name: 'See as' }).count(), 0)
    await expectNoOverflow(other, 'the policies')
    // A table that is not there is a failure too, and either may be told first.
    const created = await root.send('POST', '/management/tables', {
      body: { table_name: 'plain', columns: [{ name: 'id', data_type: 'bigint', primary_key: true }] },
      headers: { 'x-service-session': '1', 'x-service-client': 'default' },
    })
    assert.equal(created.status, 200, created.text)
    await page.goto(`${at}/data?client=default&table=plain&view=policies`)
    await page.getByText('This client has no row-level security').waitFor()
    await page.getByText('clients: default: row_level_security: enabled: true', { exact: true }).waitFor()
  })
}
