import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withoutBrowser } from '#test/browser/chromium.ts'
import {
  answerWith,
  expectAccessible,
  expectNoOverflow,
  expectZoomable,
  openConsole,
  signIn,
  userOf,
} from '#test/console.ts'
import { withClient } from '#test/database.ts'
import { PASSWORD } from '#test/harness.ts'

if (withoutBrowser !== false) test('the reference of the console in a browser', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const { t, at, root, enter } = await openConsole({
    config: { auth: { admin: { roles: { support: { user: ['list'] } } } } },
  })
  const { db } = t.service.kernel
  await withClient(t.clientUrl, (client) =>
    client.query(
      `create table books (id int primary key, title text, big bigint); insert into books values (1, '<b>One</b>', 9007199254740993)`,
    ),
  )
  const { page } = await enter(root, '/api')
  const dialog = page.getByRole('dialog')
  const keysNamed = (name: string) => db.selectFrom('apiKey').selectAll().where('name', '=', name).execute()
  const run = () => page.getByRole('button', { name: 'Run', exact: true }).click()

  test('an operation is found by search, and its address has nothing but its name', async () => {
    await page.getByRole('heading', { name: 'API', level: 1 }).waitFor()
    await expectAccessible(page, 'the overview')
    await expectZoomable(page, 'the overview')
    const asked: string[] = []
    page.on('request', (request) => void asked.push(new URL(request.url()).pathname))
    await page.getByRole('searchbox', { name: 'Search operations' }).fill('read rows post')
    await page.getByRole('link', { name: 'Read rows POST', exact: true }).first().click()
    await page.getByRole('heading', { name: 'Read rows', level: 1 }).waitFor()
    assert.equal(page.url(), `${at}/api/fetchRows`)
    await page.getByText('/gateway/fetch', { exact: true }).waitFor()
    await page
      .getByRole('listitem')
      .filter({ hasText: /^X-Service-Client/ })
      .waitFor()
    await page.getByText('invalid_condition', { exact: true }).waitFor()
    await page.getByText('members of sort_by', { exact: true }).click()
    await page
      .getByRole('listitem')
      .filter({ hasText: /^field/ })
      .first()
      .waitFor()
    await expectAccessible(page, 'an operation')
    await expectZoomable(page, 'an operation')
    assert.ok(!asked.includes('/gateway/fetch'), 'nothing runs by itself')
  })

  test('a read runs as the person, with every digit, and its line for a shell has a placeholder for the key', async () => {
    await page.goto(`${at}/api/fetchRows`)
    assert.equal(await page.getByLabel('X-Service-Client').inputValue(), 'default')
    await page.getByRole('textbox', { name: 'Body' }).fill('{"table_name": "books"}')
    await run()
    assert.match(await answerWith(page, '200 OK'), /"title": "<b>One<\/b>",\s+"big": 9007199254740993/)
    await page.getByText(/^\d+ headers$/).click()
    await page.getByText('x-request-id').first().waitFor()
    const curl = (await page.getByRole('region', { name: 'Line of curl' }).textContent()) ?? ''
    assert.match(curl, /-H "apikey: \$KEY"/)
    assert.match(curl, /-H 'X-Service-Client: default'/)
    assert.equal(page.url(), `${at}/api/fetchRows`)
    assert.equal(await page.locator('pre b').count(), 0)
  })

  test('by keyboard alone a write is sent, after a question, and the trail names the person', async () => {
    await page.goto(`${at}/api/createApiKey`)
    await page.getByRole('heading', { name: 'Issue an API key', level: 1 }).waitFor()
    await page.getByRole('textbox', { name: 'Body' }).focus()
    await page.keyboard.press('ControlOrMeta+a')
    await page.keyboard.type('{"name": "by hand", "rights": ["books.read"]}')
    await page.getByRole('button', { name: 'Run', exact: true }).focus()
    await page.keyboard.press('Enter')
    await dialog.getByText('POST /admin/api-keys is sent now, as Root').waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    assert.deepEqual(await keysNamed('by hand'), [])
    await page.locator('button:focus', { hasText: 'Run' }).waitFor()
    await page.keyboard.press('Enter')
    await dialog.getByRole('button', { name: 'Send it' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('201 Created').waitFor()
    const [key] = await keysNamed('by hand')
    const told = await db
      .selectFrom('auditEvent')
      .select(['action', 'actorId'])
      .where('targetId', '=', key?.id ?? '')
      .execute()
    assert.deepEqual(told, [{ action: 'api_key.created', actorId: root.id }])
  })

  test('a proof is asked for and the request goes on; a broken network loses nothing that was typed', async () => {
    await page.goto(`${at}/api/createApiKey`)
    const typed = '{"name": "later", "rights": []}'
    await page.getByRole('textbox', { name: 'Body' }).fill(typed)
    await page.context().setOffline(true)
    await run()
    await dialog.getByRole('button', { name: 'Send it' }).click()
    await page.getByText('The service does not answer').waitFor()
    assert.equal(await page.getByRole('textbox', { name: 'Body' }).inputValue(), typed)
    await page.context().setOffline(false)
    t.advance(11 * 60_000)
    await run()
    await dialog.getByRole('button', { name: 'Send it' }).click()
    const proof = page.getByRole('dialog', { name: 'Show that it is you' })
    await proof.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await proof.getByRole('button', { name: 'Go on' }).click()
    await page.getByText('201 Created').waitFor()
    assert.equal((await keysNamed('later')).length, 1)
  })

  test('a pasted key acts in place of the person and is in no address and no storage; nobody is refused', async () => {
    const { apiKey } = await t.key(['books.read'])
    await page.goto(`${at}/api/fetchRows`)
    await page.getByRole('textbox', { name: 'Body' }).fill('{"table_name": "books"}')
    await page.getByLabel('As', { exact: true }).selectOption('nobody')
    await run()
    await page.getByText('401 Unauthorized').waitFor()
    await page.getByLabel('As', { exact: true }).selectOption('a pasted key')
    await page.getByLabel('Key', { exact: true }).fill(apiKey)
    const sent = page.waitForRequest('**/gateway/fetch')
    await run()
    await page.getByText('200 OK').waitFor()
    const headers = await (await sent).allHeaders()
    assert.deepEqual(
      [headers.apikey, headers.cookie, headers['x-service-session']],
      [apiKey, undefined, undefined],
    )
    const kept = await page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href])',
    )
    assert.ok(!String(kept).includes(apiKey))
    await page.getByRole('button', { name: 'Sign out' }).click()
    await signIn(page, root)
    await page.getByRole('heading', { name: 'Read rows', level: 1 }).waitFor()
    // The content of a page lacks what its fields have.
    assert.equal(await page.getByLabel('Key', { exact: true }).count(), 0)
    assert.ok(!(await page.content()).includes(apiKey), 'the next person does not have it')
  })

  test('what the roles do not allow is answered as the service does, beside the request', async () => {
    const { page: theirs } = await enter(await userOf(t, 'Sue', 'support'), '/api/listApiKeys')
    await theirs.getByRole('button', { name: 'Run', exact: true }).click()
    await theirs.getByText('403 Forbidden').waitFor()
    await theirs
      .getByRole('region', { name: 'Body of the answer' })
      .getByText('insufficient_rights')
      .waitFor()
  })

  test('every operation of the document is shown, accessible and within 360 pixels', async () => {
    await page.goto(`${at}/api`)
    await page.getByRole('navigation', { name: 'Operations' }).waitFor()
    const wrong = (await page.evaluate(`(async () => {
      const wrong = []
      for (const link of document.querySelectorAll('.operations a')) {
        link.click()
        const name = link.querySelector('span').textContent
        for (let turn = 0; turn < 100 && document.querySelector('h1').textContent !== name; turn++)
          await new Promise((resolve) => requestAnimationFrame(resolve))
        if (document.querySelector('h1').textContent !== name || document.querySelector('.operation .curl') === null) wrong.push(link.href)
      }
      return wrong
    })()`)) as string[]
    assert.deepEqual(wrong, [])
    await page.setViewportSize({ width: 360, height: 740 })
    for (const path of ['/api', '/api/fetchRows', '/api/createPublicRoute', '/api/nothing']) {
      await page.goto(at + path)
      await expectNoOverflow(page, path)
      await expectAccessible(page, `${path} at 360 px`)
    }
  })
}
