import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { outboxFolder } from '#kernel/mail/transports.ts'
import { withoutBrowser } from '#test/browser/chromium.ts'
import {
  expectAccessible,
  expectNoOverflow,
  expectZoomable,
  openConsole,
  requestsOf,
  userOf,
} from '#test/console.ts'

if (withoutBrowser !== false) test('the mails of the console in a browser', { skip: withoutBrowser })
else await tests()

/** A mail of someone else's program. */
const HOSTILE = `From: a@example.com
To: b@example.com
Subject: =?utf-8?B?${Buffer.from('<b>bold</b> \u202ereversed').toString('base64')}?=
Content-Type: multipart/alternative; boundary=x

--x
Content-Type: text/plain; charset=utf-8

<script>document.title = 'run'</script> javascript:alert(1) http://evil.example/plain https://good.example/secure
--x
Content-Type: text/html

<script>document.title = 'run'</script><img src=/console/stolen>
--x--
`.replaceAll('\n', '\r\n')

async function tests(): Promise<void> {
  const { t, root, enter } = await openConsole({
    config: { auth: { admin: { roles: { looker: { operator: ['metrics'] } } } } },
  })
  const { config } = t.service.kernel

  test('mails of the outbox are listed and read by keyboard, and their links work', async () => {
    const ada = await t.signUp('Ada')
    await t.mails()
    await t.anon.post('/api/auth/forget-password', { email: ada.email })
    await t.mails()
    const { page } = await enter(root, '/mail')
    const link = page.getByRole('link', { name: 'Reset your password' })
    await link.waitFor()
    await page.getByRole('region', { name: 'Configured' }).getByText('outbox_keep').waitFor()
    await expectAccessible(page, 'the outbox')
    await expectZoomable(page, 'the outbox')
    await link.focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Reset your password', level: 1 }).waitFor()
    await expectAccessible(page, 'a mail')
    await expectZoomable(page, 'a mail')
    const opening = page.context().waitForEvent('page')
    await page.locator('.mail a').first().click()
    await (await opening).waitForURL(/reset-password/)
    await page.setViewportSize({ width: 360, height: 740 })
    await expectNoOverflow(page, 'a mail')
  })

  test('a hostile mail is text: nothing of it runs or is loaded, and only https is a link', async () => {
    await writeFile(path.join(outboxFolder(config), 'zz.eml'), HOSTILE)
    const { page } = await enter(root, '/mail')
    const asked = requestsOf(page)
    await page.getByRole('link', { name: /^<b>bold/ }).click()
    await page.getByRole('heading', { level: 1, name: /^<b>bold/ }).waitFor()
    await page.locator('h1 .code-point', { hasText: 'U+202E' }).waitFor()
    assert.deepEqual(await page.locator('.mail a').allTextContents(), ['https://good.example/secure'])
    await page.getByText('Source of the part in HTML').click()
    await page.getByText('<img src=/console/stolen>').waitFor()
    assert.equal(await page.locator('main img, main script, iframe').count(), 0)
    assert.match(await page.title(), /^<b>bold/)
    await expectAccessible(page, 'a hostile mail')
    assert.ok(!asked.some((url) => url.includes('stolen')))
  })

  test('without the right to the settings the outbox is there alone', async () => {
    const { page } = await enter(await userOf(t, 'Lola', 'looker'), '/mail')
    await page.getByRole('link', { name: /^<b>bold/ }).waitFor()
    // Its panel, since the settings in it come later.
    assert.equal(await page.getByRole('region', { name: 'Configured' }).count(), 0)
  })

  test('where mails are sent, the screen tells how, without the password', async () => {
    const sending = await openConsole({
      config: {
        mail: { transport: 'smtp', smtp_url: 'smtp://user:secret-word@127.0.0.1:9' },
        auth: { admin: { roles: { looker: { operator: ['metrics'] } } } },
      },
    })
    const { page } = await sending.enter(sending.root, '/mail')
    await page.getByText('smtp_url').waitFor()
    assert.doesNotMatch(await page.content(), /secret-word/)
    await expectAccessible(page, 'how mails are sent')
    const { page: other } = await sending.enter(await userOf(sending.t, 'Lola', 'looker'), '/mail')
    await other.getByText('Nothing here').waitFor()
    assert.equal(await other.getByRole('link', { name: 'Mail' }).count(), 0)
  })
}
