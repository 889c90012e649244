import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { withoutBrowser } from '#test/browser/chromium.ts'
import {
  expectAccessible,
  expectNoOverflow,
  expectZoomable,
  openConsole,
  tabTo,
  userOf,
} from '#test/console.ts'
import { TO_LOOPBACK } from '#test/identity-provider/visits.ts'
import { addEvents, addWebhook, startReceiver } from '#test/webhooks.ts'

const HOSTILE = '<img src=/console/stolen onerror="document.title = `run`">\u202efed\u200b'

if (withoutBrowser !== false) test('webhooks in the console', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const roles = { watcher: { operator: ['webhooks' as const], gateway: { default: ['gateway.read'] } } }
  const { t, at, root, enter } = await openConsole({
    config: { outbound: TO_LOOPBACK, auth: { admin: { roles } } },
  })
  const { kernel, deliveries: workers } = t.service
  const { db } = kernel
  const receiver = await startReceiver((response, { path }) =>
    response.writeHead(path === '/fails' ? 500 : 200).end(HOSTILE),
  )
  const { page } = await enter(root, '/webhooks')
  const open = async (path: string, heading: string, on: Page = page) => {
    await on.goto(at + path)
    await on.getByRole('heading', { level: 1, name: heading }).waitFor()
  }
  const press = (name: string, within: Page | Locator = page) =>
    within.getByRole('button', { name, exact: true }).click()
  const agree = (name: string) => press(name, page.getByRole('dialog'))
  const found = (url: string) =>
    db.selectFrom('webhook').selectAll().where('url', '=', url).where('deletedAt', 'is', null).execute()
  const trailOf = async (targetId: string) => {
    const trail = db.selectFrom('auditEvent').select(['action', 'actorId']).where('targetId', '=', targetId)
    const events = await trail.orderBy('id').execute()
    assert.ok(events.every(({ actorId }) => actorId === root.id))
    return events.map(({ action }) => action)
  }
  const statesOf = async (webhookId: string) => {
    const rows = db.selectFrom('webhookDelivery').select('status').where('webhookId', '=', webhookId)
    return (await rows.orderBy('id').execute()).map(({ status }) => status)
  }

  test('by keyboard alone a webhook is made, and its secret is shown once', async () => {
    await page.getByText('No webhook. One sends').waitFor()
    await expectAccessible(page, 'no webhook')
    await tabTo(page, page.getByRole('button', { name: 'New webhook' }))
    await page.keyboard.press('Enter')
    await page.locator('h1:focus', { hasText: 'New webhook' }).waitFor()
    await page.getByLabel('Rows inserted').waitFor()
    await expectAccessible(page, 'the form')
    await expectZoomable(page, 'the form')
    const url = `${receiver.url}/made`
    await page.keyboard.press('Tab')
    await page.keyboard.type(url)
    await tabTo(page, page.getByLabel('Rows inserted'))
    await page.keyboard.press('Space')
    await page.keyboard.press('Shift+Tab')
    await tabTo(page, page.getByRole('button', { name: 'Create' }))
    await page.keyboard.press('Enter')
    const secret = page.getByRole('textbox', { name: 'Secret' })
    assert.match(await secret.inputValue(), /^whsec_/)
    await expectAccessible(page, 'a webhook with its secret')
    await expectZoomable(page, 'a webhook with its secret')
    const [made] = await found(url)
    assert.deepEqual(
      [made?.routeKeys, made?.clientName, made?.createdBy],
      [['gateway_insert'], 'default', root.id],
    )
    assert.deepEqual(await trailOf(made?.id ?? ''), ['webhook.created'])
    assert.ok(!page.url().includes('whsec'))
    await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: 'Webhooks' }).click()
    await page.getByRole('link', { name: url }).click()
    await page.getByRole('heading', { level: 1, name: url }).waitFor()
    assert.equal(await secret.count(), 0)
  })

  test('a test shows request and answer, and a hostile answer is text', async () => {
    const { id } = await addWebhook(kernel, { url: receiver.url, headers: { 'x-key': 's3cret' } })
    await db.updateTable('webhook').set({ description: HOSTILE }).where('id', '=', id).execute()
    await open(`/webhooks/${id}`, receiver.url)
    assert.deepEqual(await page.locator('.code-point').allTextContents(), ['U+202E', 'U+200B'])
    await press('Send a test')
    await page.getByText('status 200').waitFor()
    await page.getByRole('link', { name: 'Request and answer' }).click()
    const answer = page.getByRole('region', { name: 'Body of the answer' })
    assert.ok((await answer.textContent())?.startsWith('<img src='))
    assert.deepEqual(await answer.locator('.code-point').allTextContents(), ['U+202E', 'U+200B'])
    const request = page.getByRole('region', { name: 'Body of the request' })
    assert.match((await request.textContent()) ?? '', /"test": true/)
    await page.getByText('x-key: ***').waitFor()
    assert.equal(await page.locator('main img').count(), 0)
    assert.ok(!(await page.content()).includes('s3cret'))
    await expectAccessible(page, 'a delivery')
    await expectZoomable(page, 'a delivery')
    assert.deepEqual(await trailOf(id), ['webhook.tested'])
  })

  test('a long event is shown in part, with every digit', async () => {
    const { id } = await addWebhook(kernel, { url: receiver.url })
    const [event = ''] = await addEvents(kernel, id)
    const body = `{"big": 12345678901234567890.10, "long": "${'x'.repeat(1_048_576)}"}`
    await db.updateTable('webhookEvent').set({ body }).where('id', '=', event).execute()
    await open(`/webhooks/${id}`, receiver.url)
    await page.getByRole('region', { name: 'Deliveries' }).getByRole('link').last().click()
    await page.getByText('"big": 12345678901234567890.10').waitFor()
    await page.getByText(/… and 1,0\d\d,\d{3} more characters/).waitFor()
  })

  test('one delivery is replayed, or all that have failed, in the state that the address names', async () => {
    const { id } = await addWebhook(kernel, { url: receiver.url })
    await addEvents(kernel, id, 30)
    const failed = { status: 'failed', attempt: 8, nextAttemptAt: null, responseStatus: 503, durationMs: 7 }
    await db.updateTable('webhookDelivery').set(failed).where('webhookId', '=', id).execute()
    await open(`/webhooks/${id}?status=failed`, receiver.url)
    await page.getByText('1–25 of 30').waitFor()
    await press('Next')
    await page.getByText('26–30 of 30').waitFor()
    await page.getByRole('region', { name: 'Deliveries' }).getByRole('link').last().click()
    await press('Replay')
    await page.getByText('The delivery is due again').waitFor()
    await workers.drain()
    await press('Read again')
    await page.getByText('succeeded', { exact: true }).waitFor()
    assert.equal((await statesOf(id)).filter((status) => status === 'failed').length, 29)
    await open(`/webhooks/${id}?status=failed`, receiver.url)
    await page.getByText('1–25 of 29').waitFor()
    await press('Replay failed')
    await agree('Replay')
    await page.getByText('29 deliveries are due again').waitFor()
    await page.getByText('No delivery is in this state.').waitFor()
    await workers.drain()
    assert.ok((await statesOf(id)).every((status) => status === 'succeeded'))
    assert.deepEqual(await trailOf(id), ['webhook.delivery_retried', 'webhook.deliveries_replayed'])
  })

  test('a rotation shows the new secret, and until when the former one signs', async () => {
    const { id, secret } = await addWebhook(kernel, { url: receiver.url })
    await open(`/webhooks/${id}`, receiver.url)
    await press('Rotate the secret')
    await agree('Rotate')
    const field = page.getByRole('textbox', { name: 'Secret' })
    const shown = await field.inputValue()
    assert.ok(shown.startsWith('whsec_') && shown !== secret)
    await page.getByText('signs too until').waitFor()
    assert.deepEqual(await trailOf(id), ['webhook.secret_rotated'])
    await press('I have it')
    // The content of a page lacks what its fields have.
    await field.waitFor({ state: 'detached' })
    assert.ok(!(await page.content()).includes(shown))
  })

  test('what is refused leaves the form as it was, with the field that is wrong', async () => {
    const url = `${receiver.url}/edited`
    const { id } = await addWebhook(kernel, { url, headers: { authorization: 'Bearer old' } })
    await open(`/webhooks/${id}/edit`, 'Edit the webhook')
    const [address, filter] = [page.getByLabel('Address'), page.getByLabel('Only with a row where')]
    await filter.fill('{"column": "big", "value": 12345678901234567890')
    await press('Save')
    await page.getByRole('alert').getByText('The filter is not JSON').waitFor()
    await filter.fill('{"column": "big", "value": 12345678901234567890}')
    await page.route('**/admin/webhooks/*', (route) =>
      route.request().method() === 'PATCH' ? route.abort() : route.continue(),
    )
    await press('Save')
    await page.getByText('The service does not answer').waitFor()
    await page.unrouteAll()
    await address.fill('http://10.0.0.1/in')
    await press('Save')
    await page.getByText('invalid_webhook_url').waitFor()
    await page.getByText('a receiver on this machine needs outbound.allow_http').waitFor()
    assert.equal(await address.getAttribute('aria-invalid'), 'true')
    const { url: elsewhere } = await startReceiver()
    await address.fill(elsewhere)
    await press('Save')
    await page.getByText('the stored headers would be sent there').waitFor()
    assert.equal(await filter.inputValue(), '{"column": "big", "value": 12345678901234567890}')
    await press('Replace the headers')
    await page.getByLabel('Value of header 1').fill('Bearer new')
    await press('Save')
    await page.getByText('The webhook was changed').waitFor()
    await page.getByText('12345678901234567890').waitFor()
    const changed = await db.selectFrom('webhook').selectAll().where('id', '=', id).executeTakeFirst()
    assert.deepEqual(
      [changed?.url, JSON.stringify(changed?.filter).includes('12345678901234567890')],
      [`${elsewhere}/`, true],
    )
    assert.deepEqual(await trailOf(id), ['webhook.updated'])
  })

  test('a webhook is paused, activated and deleted', async () => {
    const { id } = await addWebhook(kernel, { url: receiver.url })
    await open(`/webhooks/${id}`, receiver.url)
    await press('Pause')
    await page.getByText('paused', { exact: true }).waitFor()
    await press('Activate')
    await page.getByText('active', { exact: true }).waitFor()
    await press('Delete')
    await agree('Delete the webhook')
    await page.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor()
    const row = await db.selectFrom('webhook').select('deletedAt').where('id', '=', id).executeTakeFirst()
    assert.notEqual(row?.deletedAt, null)
    assert.deepEqual(await trailOf(id), ['webhook.updated', 'webhook.updated', 'webhook.removed'])
  })

  test('the list shows by its address which ones fail, and fits a phone', async () => {
    const url = `${receiver.url}/fails`
    const { id } = await addWebhook(kernel, { url, headers: { 'x-long-name-of-a-header': '1' } })
    await addEvents(kernel, id)
    await workers.drain()
    await open('/webhooks?state=failing', 'Webhooks')
    const rows = page.getByRole('region', { name: 'Webhooks' }).locator('tbody tr')
    await rows.first().waitFor()
    assert.equal(await rows.count(), 1)
    assert.match((await rows.textContent()) ?? '', /\/fails.*failing, 1 time.*retrying/)
    await page.getByLabel('State').selectOption('All')
    await page.waitForURL(/webhooks$/)
    await page.setViewportSize({ width: 360, height: 740 })
    const [delivery] = await db
      .selectFrom('webhookDelivery')
      .select('id')
      .where('webhookId', '=', id)
      .execute()
    for (const path of ['', '/new', `/${id}`, `/${id}/edit`, `/${id}/deliveries/${delivery?.id}`]) {
      await page.goto(`${at}/webhooks${path}`)
      await expectNoOverflow(page, path)
      await expectAccessible(page, `${path} at 360 px`)
    }
    await page.setViewportSize({ width: 1_280, height: 800 })
  })

  test('who may not list users pauses a webhook of users, and neither tests nor makes one', async () => {
    const { id } = await addWebhook(kernel, { url: receiver.url, routeKey: 'auth.*', clientName: null })
    await addEvents(kernel, id)
    await workers.drain()
    const { page: watching } = await enter(await userOf(t, 'Wim', 'watcher'), `/webhooks/${id}`)
    await watching.getByText('Your roles do not read what this webhook sends').waitFor()
    const acts = await watching.locator('.acts button').allTextContents()
    assert.deepEqual(acts, ['Pause', 'Delete'])
    await watching.getByRole('region', { name: 'Deliveries' }).getByRole('link').last().click()
    await watching.getByText('so they do not see this').first().waitFor()
    assert.equal(await watching.locator('pre').count(), 0)
    await open('/webhooks/new', 'New webhook', watching)
    await watching.getByLabel('Rows inserted').waitFor()
    assert.equal(await watching.getByLabel('Of', { exact: true }).count(), 0)
  })

  test('without the right there is no such screen', async () => {
    const { page: other } = await enter(await userOf(t, 'Una', 'user'), '/webhooks')
    await other.getByRole('heading', { name: 'Nothing here' }).waitFor()
  })
}
