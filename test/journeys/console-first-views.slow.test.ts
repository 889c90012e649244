import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openBrowser, withoutBrowser } from '#test/browser/chromium.ts'
import { openConsole } from '#test/console.ts'
import { withClient } from '#test/database.ts'
import { firstView } from '#test/first-view.ts'
import { addWebhook } from '#test/webhooks.ts'

const MOST_REQUESTS = 30
const MOST_BYTES = 120_000

if (withoutBrowser !== false) test('first views of the console', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const { t, at, root, enter } = await openConsole()
  const browser = await openBrowser()

  test('the first view of each screen is at most 30 requests and 120 kB', async () => {
    await withClient(t.clientUrl, (client) =>
      client.query(`create table books (id int primary key, title text, price numeric);
        insert into books select n, 'book ' || n, n * 1.25 from generate_series(1, 240) n`),
    )
    const key = await t.admin.post('/admin/api-keys', {
      ...{ name: 'shop', client_name: 'default', rights: ['books.*'] },
    })
    await t.admin.post('/admin/public-routes', {
      ...{ route_key: 'books', client_name: 'default', allowed_ops: ['fetch'], table_name: 'books' },
      columns: ['id', 'title'],
    })
    const webhook = await addWebhook(t.service.kernel, { url: 'https://hooks.example/orders' })
    const { body: organization } = await root.post('/api/auth/organization/create', {
      ...{ name: 'Engines', slug: 'engines', userId: root.id, keepCurrentActiveOrganization: true },
    })
    const { page } = await enter()
    const cookies = await page.context().cookies()
    const table = '/data?client=default&table=books'
    const screens = {
      Home: '',
      Users: '/users',
      'One user': `/users/${root.id}`,
      Organizations: '/organizations',
      'One organization': `/organizations/${organization.id}`,
      'Data: tables': '/data',
      'Data: rows': table,
      'Data: structure': `${table}&view=structure`,
      'Data: policies': `${table}&view=policies`,
      'Data: indexes': `${table}&view=indexes`,
      'Data: import': `${table}&view=import`,
      'Data: new table': '/data?client=default&view=new-table',
      SQL: '/sql',
      API: '/api',
      'One operation': '/api/fetchRows',
      Keys: '/keys',
      'One key': `/keys/${key.body.data.record.id}`,
      'A new key': '/keys/new',
      Pipelines: '/pipelines',
      'A pipeline': '/pipelines/edit',
      Webhooks: '/webhooks',
      'One webhook': `/webhooks/${webhook.id}`,
      'A new webhook': '/webhooks/new',
      'Public routes': '/public-routes',
      'One public route': '/public-routes/books',
      'A new public route': '/public-routes/NEW',
      Backups: '/backups',
      Mail: '/mail',
      Audit: '/audit',
      Settings: '/settings',
    }
    const over: string[] = []
    for (const [name, path] of Object.entries(screens)) {
      const { page } = await browser.visit()
      const context = page.context()
      await context.addCookies(cookies)
      const { requests, bytes } = await firstView(context, at + path)
      await context.close()
      assert.ok(
        requests.every((request) => request.url().startsWith(`${new URL(at).origin}/`)),
        'nothing comes from elsewhere',
      )
      if (requests.length > MOST_REQUESTS || bytes > MOST_BYTES)
        over.push(`${name}: ${requests.length} requests, ${bytes} bytes`)
    }
    assert.deepEqual(over, [])
  })
}
