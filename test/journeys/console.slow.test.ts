import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CONSOLE_COOKIE } from '#kernel/http/header-names.ts'
import { offerFirstAdminAt } from '#startup/first-admin.ts'
import { otherOrigin, withoutBrowser } from '#test/browser/chromium.ts'
import {
  expectAccessible,
  expectNoOverflow,
  expectZoomable,
  openConsole,
  requestsOf,
  signIn,
  userOf,
} from '#test/console.ts'
import { ADMIN_KEY, PASSWORD, testService } from '#test/harness.ts'
import { codeOf, enrolTotp } from '#test/second-factor.ts'
import { openBrowser } from '../browser/chromium.ts'

if (withoutBrowser !== false) test('the console in a browser', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const { t, at, root, visit, enter } = await openConsole({
    config: { auth: { admin: { roles: { support: { user: ['list'] } } } } },
  })
  const SCREENS = [
    'Home',
    'Users',
    'Organizations',
    'Data',
    'SQL',
    'API',
    'Keys',
    'Pipelines',
    'Webhooks',
    'Public routes',
    'Backups',
    'Mail',
    'Audit',
    'Settings',
  ]

  test('one signs in by keyboard alone, moves by shortcuts, and skips the navigation', async () => {
    const { page } = await visit()
    await page.goto(at)
    await page.locator('input[name=username]:focus').waitFor()
    await page.keyboard.type(root.email)
    await page.keyboard.press('Tab')
    await page.keyboard.type(PASSWORD)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Home' }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('u')
    await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor()
    await page.locator('h1:focus').waitFor()
    assert.match(page.url(), /\/console\/users$/)
    await page.getByRole('cell', { name: root.email }).waitFor()
    await page.keyboard.press('/')
    await page.locator('input[type=search]:focus').waitFor()
    await page.keyboard.type('g?')
    assert.equal(await page.locator('input[type=search]').inputValue(), 'g?')
    assert.equal(await page.getByRole('dialog').count(), 0, 'keys that are typed move nothing')
    await page.keyboard.press('Escape')
    await page.reload()
    await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor()
    await page.keyboard.press('Tab')
    assert.equal(await page.locator(':focus').textContent(), 'Skip to content')
    await page.keyboard.press('Enter')
    assert.equal(await page.locator(':focus').getAttribute('id'), 'content')
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Shortcuts' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  })

  test('a person sees the screens that their roles open', async () => {
    const support = await userOf(t, 'Sue', 'support')
    const shown = async (user: typeof root) => {
      const { page } = await enter(user)
      return page.getByRole('navigation', { name: 'Screens' }).getByRole('link').allTextContents()
    }
    assert.deepEqual(await shown(root), SCREENS)
    assert.deepEqual(await shown(support), ['Home', 'Users', 'API', 'Mail'])
    const { page } = await enter(await userOf(t, 'Una', 'user'), '/settings')
    await page.getByRole('heading', { name: 'Nothing here' }).waitFor()
  })

  test('every screen is accessible, light and dark, and fits 360 pixels and 200 %', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page } = await enter(root, '', { colorScheme })
      for (const name of SCREENS) {
        await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name }).click()
        await page.getByRole('heading', { name, level: 1 }).waitFor()
        await expectAccessible(page, `${name}, ${colorScheme}`)
        if (colorScheme === 'light') await expectZoomable(page, name)
      }
    }
    const { page } = await enter(root, '', { viewport: { width: 360, height: 740 } })
    for (const path of [
      '',
      '/users',
      `/users/${root.id}`,
      '/organizations',
      '/data',
      '/audit',
      '/settings',
    ]) {
      await page.goto(at + path)
      await expectNoOverflow(page, path)
      await expectAccessible(page, `${path} at 360 px`)
    }
    await page.getByRole('button', { name: 'Menu' }).click()
    await page.getByRole('link', { name: 'Users' }).click()
    await page.getByRole('heading', { name: 'Users', level: 1 }).waitFor()
    const { page: door } = await visit()
    await door.goto(at)
    await door.getByRole('heading', { name: 'Sign in' }).waitFor()
    await expectAccessible(door, 'the door')
    await expectZoomable(door, 'the door')
  })

  test('the theme is the system’s until one is chosen, which the browser keeps', async () => {
    const { page } = await enter(root, '', { colorScheme: 'light' })
    const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor')
    const light = await background()
    await page.getByLabel('Theme').selectOption('dark')
    const dark = await background()
    assert.notEqual(dark, light)
    await page.reload()
    await page.getByRole('heading', { name: 'Home' }).waitFor()
    assert.equal(await background(), dark)
    await page.getByLabel('Theme').selectOption('system')
    assert.equal(await background(), light)
  })

  test('what loads slowly says so, and a screen that cannot be loaded says what to do', async () => {
    const { page } = await enter()
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    await page.route('**/admin/list-users**', async (route) => {
      await held
      await route.continue()
    })
    await page.getByRole('link', { name: 'Users' }).click()
    await page.getByText('Loading the users …').waitFor()
    release()
    await page.getByRole('cell', { name: root.email }).waitFor()
    // A proxy in between answers in its own way.
    const json = { code: 404, message: { text: 'No' }, error: 7 }
    await page.route('**/admin/list-users**', (route) => route.fulfill({ status: 404, json }))
    await page.getByLabel('Show').selectOption('Admins')
    await page.getByText('The service has answered 404').waitFor()
    await page.getByText('status_404').waitFor()
    await page.route('**/screens/settings.js', (route) => route.fulfill({ status: 404, body: '' }))
    await page.getByRole('link', { name: 'Settings' }).click()
    await page.getByText('Settings could not be loaded').waitFor()
    await page.unrouteAll()
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('cell', { name: 'session.expires_in', exact: true }).waitFor()
  })

  test('a second factor is asked for, and a wrong code keeps the form', async () => {
    const enrolled = await enrolTotp(t, await userOf(t, 'Tess', 'admin'))
    const { page } = await visit()
    await page.goto(at)
    await page.getByLabel('Email or username').fill(enrolled.email)
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByLabel('Code', { exact: true }).fill('12345x')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').waitFor()
    assert.equal(await page.getByLabel('Code', { exact: true }).inputValue(), '12345x')
    await page.getByLabel('Code', { exact: true }).fill(codeOf(t, enrolled.secret))
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Home' }).waitFor()
  })

  test('a key acts until the page is closed, and no storage or address has it, nor a session’s token', async () => {
    const { page } = await visit()
    const urls = requestsOf(page)
    await page.goto(at)
    await page.getByText('Use a key instead').click()
    await page.getByLabel('Key', { exact: true }).fill('wrong')
    await page.getByRole('button', { name: 'Use this key' }).click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Key', { exact: true }).fill(ADMIN_KEY)
    await page.getByRole('button', { name: 'Use this key' }).click()
    await page.getByText('Admin key').waitFor()
    await page.getByRole('heading', { name: 'Components' }).waitFor()
    const kept = async () =>
      String(
        await page.evaluate(
          'Promise.all([JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state, document.cookie, location.href]), indexedDB.databases().then(JSON.stringify), caches.keys()])',
        ),
      )
    assert.ok(!`${await kept()} ${urls}`.includes(ADMIN_KEY))
    // Another tab, in which a person signs in, is none of the key's.
    const other = await page.context().newPage()
    await other.goto(at)
    await signIn(other, root)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await other.getByRole('navigation').getByRole('link', { name: 'Users' }).click()
    await other.getByRole('heading', { level: 1, name: 'Users' }).waitFor()
    await other.getByRole('button', { name: 'Sign out' }).click()
    await other.getByRole('heading', { name: 'Sign in' }).waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await signIn(page, root)
    const token = (await page.context().cookies()).find(({ name }) => name === CONSOLE_COOKIE)
    assert.ok(token?.httpOnly && token.sameSite === 'Strict')
    assert.ok(!`${await kept()} ${urls}`.includes(token.value))
  })

  test('a page of another origin frames nothing, and can make the console do nothing', async () => {
    const { page } = await enter()
    const other = await otherOrigin()
    const foreign = await page.context().newPage()
    const paths = ['/console', '/docs', '/dev/mail', '/api/auth/get-session']
    await foreign.goto(`${other.origin}/attack`)
    const origin = new URL(at).origin
    const attempts = (await foreign.evaluate(`(async () => {
      const outcomes = []
      for (const path of ${JSON.stringify(paths)}) {
        const frame = document.createElement('iframe')
        const loaded = new Promise((resolve) => { frame.onload = resolve })
        frame.src = ${JSON.stringify(origin)} + path
        document.body.append(frame)
        await loaded
        let content = 'closed'
        try { content = frame.contentDocument.body.textContent } catch {}
        outcomes.push(content)
      }
      for (const path of ['/api/auth/sign-out', '/api/auth/admin/ban-user', '/api/auth/admin/list-users']) {
        const headers = { 'x-service-session': '1', 'content-type': 'application/json' }
        const method = path.includes('list') ? 'GET' : 'POST'
        outcomes.push(await fetch(${JSON.stringify(origin)} + path, { method, headers, credentials: 'include', ...(method === 'POST' && { body: '{}' }) }).then(() => 'answered', () => 'blocked'))
      }
      return outcomes
    })()`)) as string[]
    assert.deepEqual(attempts.slice(-3), ['blocked', 'blocked', 'blocked'])
    assert.ok(
      attempts.slice(0, -3).every((text) => text === 'closed' || text === ''),
      attempts.join(),
    )
    await foreign.close()
    await page.reload()
    await page.getByRole('heading', { name: 'Home' }).waitFor()
  })

  test('the link of a first start makes the administrator, and leaves the address at once', async () => {
    const fresh = await testService()
    const token = await offerFirstAdminAt(fresh.controlUrl, fresh.config, fresh.service.kernel.random)
    const { page } = await (await openBrowser()).visit()
    await page.goto(`${fresh.service.kernel.publicUrl()}/console/first-admin#${token}`)
    await page.getByLabel('Name').fill('Root')
    assert.ok(!page.url().includes(token ?? ''))
    await page.getByLabel('Email').fill('root@example.com')
    await page.getByLabel('Password').fill('short')
    await page.getByRole('button', { name: 'Create the administrator' }).click()
    await page.getByText('password_too_short').waitFor()
    await page.getByLabel('Password').fill(PASSWORD)
    // The administrator is made, and the sign-in fails: another press goes on where the first one has ended.
    await page.route('**/sign-in/email', (route) => route.abort(), { times: 1 })
    await page.getByRole('button', { name: 'Create the administrator' }).click()
    await page.getByText('The service does not answer').waitFor()
    await page.getByRole('button', { name: 'Create the administrator' }).click()
    await page.getByRole('heading', { name: 'Home' }).waitFor()
    assert.deepEqual(
      await page.getByRole('navigation', { name: 'Screens' }).getByRole('link').allTextContents(),
      SCREENS,
    )
    const late = await page.context().newPage()
    await late.goto(`${fresh.service.kernel.publicUrl()}/console/first-admin#${token}`)
    await late.getByLabel('Name').fill('Other')
    await late.getByLabel('Email').fill('other@example.com')
    await late.getByLabel('Password').fill(PASSWORD)
    await late.getByRole('button', { name: 'Create the administrator' }).click()
    await late.getByText('The link was used, has expired, or somebody administers').waitFor()
  })
}
