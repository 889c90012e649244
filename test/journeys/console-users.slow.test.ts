import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { Page } from 'playwright-core'
import { otherOrigin, withoutBrowser } from '#test/browser/chromium.ts'
import { untilLoaded } from '#test/browser/loaded.ts'
import { expectAccessible, expectZoomable, openConsole, signIn, userOf } from '#test/console.ts'
import { eventually } from '#test/embedded.ts'
import { PASSWORD } from '#test/harness.ts'

if (withoutBrowser !== false) test('the users of the console in a browser', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const { t, at, root, enter } = await openConsole()
  const { db, coherence } = t.service.kernel

  const trailOf = (targetId: string) =>
    db
      .selectFrom('auditEvent')
      .select(['action', 'actorId'])
      .where('targetId', '=', targetId)
      .orderBy('id')
      .execute()
  const bannedOf = async ({ id }: { readonly id: string }) =>
    (await db.selectFrom('user').select(['banned', 'banReason', 'role']).where('id', '=', id).execute())[0]
  const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
  const sessionsOf = (id: string) => db.selectFrom('session').select('id').where('userId', '=', id).execute()

  test('users are searched, filtered, sorted and paged by the address, which a colleague can open', async () => {
    for (let count = 0; count < 60; count++) await userOf(t, `P${String(count).padStart(2, '0')}`, 'user')
    const { page } = await enter(root, '/users')
    await page.getByText(/^1–50 of 6\d$/).waitFor()
    await press(page, 'Next')
    await page.getByText(/^51–6\d of 6\d$/).waitFor()
    await page.getByRole('searchbox').fill('p0')
    await page.getByText('1–10 of 10').waitFor()
    assert.equal(await page.evaluate('document.activeElement.type'), 'search', 'the focus stays')
    await press(page, 'Email')
    await page.waitForURL(/sort=email/)
    await page
      .getByRole('columnheader', { name: 'Email' })
      .and(page.locator('[aria-sort=ascending]'))
      .waitFor()
    const namesOn = (shown: Page) => shown.locator('tbody tr td:first-child').allTextContents()
    const address = page.url()
    const { page: colleague } = await enter(root, address.slice(at.length))
    await colleague.getByText('1–10 of 10').waitFor()
    const sorted = await namesOn(colleague)
    assert.equal(sorted.length, 10)
    // The heading is of the new order at once, and the rows when they are answered.
    await eventually(async () => isDeepStrictEqual(await namesOn(page), sorted))
    await page.goBack()
    await page.getByLabel('Show').selectOption('Admins')
    await page.waitForURL(/filter=admins/)
  })

  test('a ban is made and lifted, and the trail names the person', async () => {
    const ada = await userOf(t, 'Ada', 'user')
    const { page } = await enter(root, `/users/${ada.id}`)
    await page.getByRole('heading', { name: 'Ada', level: 1 }).waitFor()
    await press(page, 'Ban')
    const dialog = page.getByRole('dialog')
    await dialog.waitFor()
    await expectAccessible(page, 'the dialog')
    await expectZoomable(page, 'the dialog')
    await dialog.getByLabel('Reason').fill('spam')
    await dialog.getByRole('button', { name: 'Ban' }).click()
    await page.getByText('Ada is banned').waitFor()
    assert.deepEqual(await bannedOf(ada), { banned: true, banReason: 'spam', role: 'user' })
    assert.equal((await ada.get('/api/auth/get-session')).status, 401)
    await press(page, 'Lift the ban')
    await page.getByText('Ada may sign in again').waitFor()
    assert.equal((await bannedOf(ada))?.banned, false)
    const told = (await trailOf(ada.id)).filter(({ action }) => action.includes('ban'))
    assert.deepEqual(told, [
      { action: 'user.banned', actorId: root.id },
      { action: 'user.unbanned', actorId: root.id },
    ])
  })

  test('by keyboard alone a role is changed, and an unknown one leaves the form as it was', async () => {
    const ada = await userOf(t, 'Aki', 'user')
    const { page } = await enter(root, `/users/${ada.id}`)
    await page.getByRole('heading', { name: 'Aki', level: 1 }).waitFor()
    await page.getByRole('button', { name: 'Change role' }).focus()
    await page.keyboard.press('Enter')
    await page.locator('dialog input:focus').waitFor()
    await page.keyboard.type('nothing')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
    assert.equal(await page.getByRole('textbox', { name: 'Role' }).inputValue(), 'usernothing')
    await page.getByRole('textbox', { name: 'Role' }).press('ControlOrMeta+a')
    await page.keyboard.type('admin')
    await page.keyboard.press('Enter')
    await page.getByText('Aki has the role admin').waitFor()
    assert.equal((await bannedOf(ada))?.role, 'admin')
    await page.locator('button:focus', { hasText: 'Change role' }).waitFor()
  })

  test('each panel says that it loads, and one that has failed offers to try again', async () => {
    const ada = await userOf(t, 'Ann', 'user')
    const { page } = await enter()
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    await page.route(
      /list-user-(sessions|accounts|factors|organizations)|list-audit-events/,
      async (route) => {
        await held
        const json = { code: 404, message: { text: 'No' }, error: 7 }
        await (route.request().url().includes('factors')
          ? route.fulfill({ status: 404, json })
          : route.continue())
      },
    )
    await page.goto(`${at}/users/${ada.id}`)
    const panel = (name: string) => page.getByRole('region', { name, exact: true })
    for (const name of ['Sessions', 'Ways in', 'Factors', 'Organizations', 'Audit'])
      await panel(name)
        .getByText(/^Loading the /)
        .waitFor()
    release()
    await panel('Factors').getByText('The service has answered 404').waitFor()
    await page.unrouteAll()
    await panel('Factors').getByRole('button', { name: 'Try again' }).click()
    await panel('Factors').getByText('Second factor').waitFor()
    await untilLoaded(page)
  })

  test('sessions are listed and ended one by one', async () => {
    const ada = await userOf(t, 'Alma', 'user')
    await t.anon.post('/api/auth/sign-in/email', { email: ada.email, password: PASSWORD })
    const { page } = await enter(root, `/users/${ada.id}`)
    await page.getByText('2 sessions').waitFor()
    await page.getByRole('button', { name: 'End', exact: true }).first().click()
    await page.getByText('1 session', { exact: true }).waitFor()
    assert.equal((await sessionsOf(ada.id)).length, 1)
    await press(page, 'End all')
    await page.getByRole('dialog').getByRole('button', { name: 'End all sessions' }).click()
    await page.getByText('0 sessions').waitFor()
    assert.deepEqual(await sessionsOf(ada.id), [])
  })

  test('when the session has ended, the act goes on after a sign-in', async () => {
    const ada = await userOf(t, 'Abe', 'user')
    const { page } = await enter(root, `/users/${ada.id}`)
    await untilLoaded(page)
    await press(page, 'Ban')
    await page.getByLabel('Reason').fill('late')
    await db.deleteFrom('session').where('userId', '=', root.id).execute()
    await coherence.settle()
    await page.getByRole('dialog').getByRole('button', { name: 'Ban' }).click()
    const again = page.getByRole('dialog', { name: 'Your session has ended' })
    await again.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await again.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('Abe is banned').waitFor()
    assert.equal((await bannedOf(ada))?.banReason, 'late')
  })

  test('what asks for a recent proof asks for the password, and goes on', async () => {
    const ina = await userOf(t, 'Ina', 'admin')
    const { page } = await enter(ina, `/users/${ina.id}`)
    await page.getByRole('heading', { name: 'Ina', level: 1 }).waitFor()
    t.advance(11 * 60_000)
    await press(page, 'Set password')
    await page.getByLabel('New password').fill('another horse staple')
    await page.getByRole('dialog').getByRole('button', { name: 'Set password' }).click()
    const proof = page.getByRole('dialog', { name: 'Show that it is you' })
    await proof.getByLabel('Password', { exact: true }).fill('wrong password')
    await proof.getByRole('button', { name: 'Go on' }).click()
    await proof.getByRole('alert').waitFor()
    await proof.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await proof.getByRole('button', { name: 'Go on' }).click()
    await proof.waitFor({ state: 'detached' })
    const signedIn = () =>
      t.anon.post('/api/auth/sign-in/email', { email: ina.email, password: 'another horse staple' })
    // With `mustChange` the new password is right and has to be changed.
    await page
      .getByText(/has a new password|session has ended/)
      .first()
      .waitFor()
    assert.equal((await signedIn()).body.code, 'PASSWORD_CHANGE_REQUIRED')
  })

  test('a tab notices another user before it acts', async () => {
    const [ada, bea] = [await userOf(t, 'Arno', 'user'), await userOf(t, 'Bea', 'admin')]
    const { page } = await enter(root, `/users/${ada.id}`)
    const tab = await page.context().newPage()
    await tab.goto(at)
    await tab.getByRole('button', { name: 'Sign out' }).click()
    await tab.getByRole('heading', { name: 'Sign in' }).waitFor()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await signIn(page, root)
    await page.getByRole('heading', { name: 'Arno', level: 1 }).waitFor()
    await untilLoaded(page)
    await press(page, 'Ban')
    // As if this tab had been asleep: the cookie is another user's by now, and no message has come.
    const answer = await t.anon.post(
      '/api/auth/sign-in/email',
      { email: bea.email, password: PASSWORD },
      { headers: { 'x-service-session': '1', origin: new URL(at).origin } },
    )
    const [cookie] = (await page.context().cookies()).filter(({ name }) => name === 'service-auth.console')
    assert.ok(cookie)
    await page.context().addCookies([{ ...cookie, value: answer.body.token }])
    await page.getByRole('dialog').getByRole('button', { name: 'Ban' }).click()
    await page.getByText('Another user has signed in in this browser').first().waitFor()
    assert.equal((await bannedOf(ada))?.banned, false)
    await page.keyboard.press('Escape')
    // Neither is anything read as that user, nor that session ended.
    await page.getByRole('link', { name: 'Audit' }).click()
    await page.getByRole('main').getByText('another_user').waitFor()
    assert.equal(await page.getByRole('table').count(), 0)
    await press(page, 'Sign out')
    await page.getByRole('banner').getByText('another_user').waitFor()
    assert.equal((await sessionsOf(bea.id)).length, 2)
    await page.getByRole('button', { name: 'Continue as Bea' }).click()
    await page.getByText(bea.email).waitFor()
  })

  test('an impersonation opens the app with a one-time code, and the console’s own session stays', async () => {
    const ada = await userOf(t, 'Ann', 'user')
    const app = await otherOrigin()
    const { page } = await enter(root, `/users/${ada.id}`)
    await press(page, 'Act as this user')
    await page.getByLabel('Address of the app').fill(app.origin)
    const opening = page.context().waitForEvent('page')
    await page.getByRole('button', { name: 'Open the app' }).click()
    const opened = await opening
    await opened.waitForURL(/#handoff=/)
    const code = new URL(opened.url()).hash.replace('#handoff=', '')
    assert.ok(!app.visited.join().includes(code), 'a fragment goes to no server')
    const begun = await t.anon.post('/api/auth/admin/exchange-handoff', { code })
    assert.equal(begun.body.user.id, ada.id)
    await page.reload()
    await page.getByRole('heading', { name: 'Ann', level: 1 }).waitFor()
  })

  test('a user is created and deleted, and a slow or broken network loses nothing that was typed', async () => {
    const { page } = await enter(root, '/users')
    await press(page, 'New user')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('New')
    await dialog.getByLabel('Email').fill('new@example.com')
    await dialog.getByLabel('Password').fill(PASSWORD)
    await page.context().setOffline(true)
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByText('The service does not answer').waitFor()
    assert.equal(await dialog.getByLabel('Email').inputValue(), 'new@example.com')
    await page.context().setOffline(false)
    await dialog.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'New', level: 1 }).waitFor()
    await press(page, 'Delete')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete the user' }).click()
    await page.getByText('new@example.com was deleted').waitFor()
    assert.deepEqual(
      await db.selectFrom('user').select('id').where('email', '=', 'new@example.com').execute(),
      [],
    )
  })
}
