import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { withoutBrowser } from '#test/browser/chromium.ts'
import { expectAccessible, expectNoOverflow, expectZoomable, openConsole, userOf } from '#test/console.ts'
import { withClient } from '#test/database.ts'
import { actor } from '#test/harness.ts'

if (withoutBrowser !== false) test('the keys of the console in a browser', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const { t, at, root, enter, trailOf } = await openConsole({
    config: {
      auth: { admin: { roles: { keeper: { operator: ['keys'] }, support: { user: ['list'] } } } },
    },
  })
  const { db, coherence } = t.service.kernel
  await withClient(t.clientUrl, (client) =>
    client.query('create table books (id int primary key, title text)'),
  )
  const { page } = await enter(root, '/keys')

  const keyNamed = (name: string) =>
    db.selectFrom('apiKey').selectAll().where('name', '=', name).executeTakeFirst()
  const press = (name: string, on: Page = page) => on.getByRole('button', { name, exact: true }).click()
  const open = (path: string, on: Page = page) => on.goto(at + path)
  const secretOn = async () => {
    const field = page.getByRole('textbox', { name: 'Secret' })
    await field.waitFor()
    return field.inputValue()
  }
  const read = async (apikey: string) => {
    const { status } = await actor(t.url, { apikey, 'x-service-client': 'default' }).post('/gateway/fetch', {
      table_name: 'books',
    })
    return status
  }
  const made = async (name: string, more: Record<string, unknown> = {}) => {
    const body = { name, client_name: 'default', rights: ['books.read'], ...more }
    const { data } = (await t.admin.post('/admin/api-keys', body)).body
    return { id: data.record.id as string, text: data.api_key as string }
  }

  test('by keyboard alone a key is made, which is shown once and works', async () => {
    await page.getByRole('button', { name: 'New key' }).focus()
    await page.keyboard.press('Enter')
    await page.locator('input[maxlength="200"]:focus').waitFor()
    await page.keyboard.type('reporting')
    await page.getByText('nothing: no right opens anything here').waitFor()
    await page.getByLabel('Table', { exact: true }).focus()
    await page.keyboard.type('books')
    await page.getByRole('button', { name: 'Create the key' }).press('Enter')
    // No key is made without what stands there.
    await page.locator('input[list]:invalid:focus').waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Remove books.read' }).waitFor()
    await page.getByText('reads rows of books').waitFor()
    await page.getByRole('checkbox', { name: 'gateway.query.read' }).focus()
    await page.keyboard.press('Space')
    await page
      .getByRole('listitem')
      .filter({ hasText: /^Run one read-only SQL statement/ })
      .waitFor()
    await expectAccessible(page, 'the form of a new key')
    await expectZoomable(page, 'the form of a new key')
    await page.getByRole('button', { name: 'Create the key' }).focus()
    await page.keyboard.press('Enter')
    const secret = await secretOn()
    const key = await keyNamed('reporting')
    assert.deepEqual(
      [key?.rights, key?.clientName, key?.expiresAt, key?.createdBy],
      [['books.read', 'gateway.query.read'], 'default', null, root.id],
    )
    assert.deepEqual(await trailOf(key?.id ?? ''), [['api_key.created', true]])
    assert.equal(await read(secret), 200)
    await expectAccessible(page, 'a new key')
    await expectZoomable(page, 'a new key')
    assert.ok(!page.url().includes(secret))
    await page.reload()
    await page.getByText('reads rows of books').waitFor()
    // The content of a page lacks what its fields have.
    assert.equal(await page.getByRole('textbox', { name: 'Secret' }).count(), 0)
    assert.ok(!(await page.content()).includes(secret))
  })

  test('a table that stands in its field keeps the form from being sent, also before the next frame', async () => {
    await open('/keys/new')
    await page.getByLabel('Table', { exact: true }).waitFor()
    const isValid = await page.evaluate(`(async () => {
      const field = document.querySelector('input[list]')
      field.value = 'books'
      field.dispatchEvent(new Event('input', { bubbles: true }))
      for (let turn = 0; turn < 3; turn++) await undefined
      return field.validity.valid
    })()`)
    assert.equal(isValid, false)
  })

  test('an edit sends only what was changed, and a broken network loses nothing', async () => {
    const { id } = await made('edited', { expires_at: '2100-01-01T12:34:56Z' })
    await open(`/keys/${id}`)
    await press('Edit')
    await page.getByLabel('Name', { exact: true }).fill('renamed')
    await page.getByRole('checkbox', { name: /^\* / }).check()
    await page.getByText('reads, inserts and updates, deletes rows of every table').waitFor()
    await t.admin.send('PATCH', `/admin/api-keys/${id}`, { body: { description: 'of a colleague' } })
    await page.context().setOffline(true)
    await press('Save')
    await page.getByText('The service does not answer').waitFor()
    assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'renamed')
    await page.context().setOffline(false)
    await press('Save')
    await page.getByRole('heading', { name: 'renamed', level: 1 }).waitFor()
    const key = await keyNamed('renamed')
    assert.deepEqual(
      [key?.rights, key?.description, key?.expiresAt?.toISOString()],
      [['books.read', '*'], 'of a colleague', '2100-01-01T12:34:56.000Z'],
    )
    assert.deepEqual((await trailOf(id)).at(-1), ['api_key.updated', true])
  })

  test('a key is rotated, deactivated, activated and revoked', async () => {
    const { id, text } = await made('turned')
    await open(`/keys/${id}`)
    await press('Rotate')
    const dialog = page.getByRole('dialog')
    await dialog.waitFor()
    await expectAccessible(page, 'the rotation')
    await expectZoomable(page, 'the rotation')
    await dialog.getByLabel('The old secret works').selectOption('An hour')
    await dialog.getByRole('button', { name: 'Rotate' }).click()
    const secret = await secretOn()
    assert.notEqual(secret, text)
    assert.deepEqual([await read(text), await read(secret)], [200, 200])
    await press('Deactivate')
    await dialog.getByRole('button', { name: 'Deactivate' }).click()
    await page.getByText('turned is inactive').waitFor()
    assert.equal(await read(secret), 401)
    await press('Activate')
    await page.getByText('turned is active').waitFor()
    assert.equal(await read(secret), 200)
    await press('Revoke')
    await dialog.getByText('svc_').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    assert.ok(await keyNamed('turned'))
    await press('Revoke')
    await dialog.getByRole('button', { name: 'Revoke the key' }).click()
    await page.getByText('turned was revoked').waitFor()
    assert.equal(await keyNamed('turned'), undefined)
    const acts = ['created', 'rotated', 'updated', 'updated', 'revoked'].map((act, at) => [
      `api_key.${act}`,
      at > 0,
    ])
    assert.deepEqual(await trailOf(id), acts)
  })

  test('keys are searched, filtered and sorted by an address, which never has a secret', async () => {
    const { text } = await made('found-one')
    const { id } = await made('found-two')
    await t.admin.send('PATCH', `/admin/api-keys/${id}`, { body: { is_active: false } })
    await open('/keys')
    await page.getByLabel('Search').fill('found-')
    await page.getByText('1–2', { exact: true }).waitFor()
    await page.getByLabel('State').selectOption('inactive')
    await page.getByText('1–1', { exact: true }).waitFor()
    assert.match(page.url(), /search=found-&state=inactive/)
    await page.reload()
    await page.getByRole('link', { name: 'found-two' }).waitFor()
    await page.getByLabel('State').selectOption('')
    await press('Name')
    await page.waitForURL(/sort=name/)
    const visited: string[] = []
    page.on('framenavigated', (frame) => void visited.push(frame.url()))
    page.on('request', (request) => void visited.push(request.url()))
    await page.getByLabel('Search').fill(text)
    await page.getByRole('link', { name: 'found-one' }).waitFor()
    await page.getByText('1–1', { exact: true }).waitFor()
    assert.ok(!`${visited} ${page.url()}`.includes(text.slice(22)))
  })

  test('what one lacks is not given, and the form stays; who has no right sees nothing', async () => {
    const { page: theirs } = await enter(await userOf(t, 'Kim', 'keeper'), '/keys/new')
    await theirs.getByLabel('Name', { exact: true }).fill('too much')
    await theirs.getByRole('checkbox', { name: /^\* / }).check()
    await press('Create the key', theirs)
    await theirs.getByText('insufficient_rights').waitFor()
    assert.equal(await theirs.getByLabel('Name', { exact: true }).inputValue(), 'too much')
    assert.equal(await keyNamed('too much'), undefined)
    const { page: support } = await enter(await userOf(t, 'Sue', 'support'), '/keys')
    await support.getByRole('heading', { name: 'Nothing here' }).waitFor()
    assert.equal(await support.getByRole('link', { name: 'Keys' }).count(), 0)
  })

  test('hostile names are text, and the screens are accessible and fit 360 pixels', async () => {
    const { id } = await made('hostile', { client_name: 'gone', rights: ['a<b>.read', 'pipelines.run'] })
    const name = `<img src=x onerror="document.title='run'">abc\u202edef`
    await db
      .updateTable('apiKey')
      .set({ name, description: 'long '.repeat(200) })
      .where('id', '=', id)
      .execute()
    await coherence.settle()
    await page.setViewportSize({ width: 360, height: 740 })
    for (const path of ['/keys', '/keys/new', `/keys/${id}`]) {
      await open(path)
      await expectNoOverflow(page, path)
      await expectAccessible(page, `${path} at 360 px`)
    }
    await page.getByText('no such client').waitFor()
    await page.locator('h1 .code-point', { hasText: 'U+202E' }).waitFor()
    assert.equal(await page.locator('img').count(), 0)
    for (const path of ['/keys/not-an-id', '/keys?state=odd&sort=x&offset=-3&client=%3Cb%3E']) {
      await open(path)
      await page.getByRole('alert').waitFor()
    }
  })
}
