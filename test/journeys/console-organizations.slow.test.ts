import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { withoutBrowser } from '#test/browser/chromium.ts'
import { expectAccessible, expectNoOverflow, expectZoomable, openConsole, userOf } from '#test/console.ts'
import { createInvitation, createOrganization, createPerson } from '#test/organizations.ts'

if (withoutBrowser !== false) test('the organizations of the console in a browser', { skip: withoutBrowser })
else await tests()

async function tests(): Promise<void> {
  const { t, at, root, enter } = await openConsole({
    config: {
      auth: {
        admin: {
          roles: { reader: { organization: ['list'] }, support: { organization: ['list'], user: ['list'] } },
        },
      },
    },
  })
  const { db, coherence } = t.service.kernel
  // Of an administrator by the link or the command it is.
  await db.updateTable('user').set({ emailProvenAt: new Date() }).where('id', '=', root.id).execute()
  await coherence.settle()
  const { page } = await enter(root, '/organizations')

  async function scene(name: string) {
    const [ada, bea] = [await createPerson(t), await createPerson(t)]
    const organization = await createOrganization(t, [
      [ada, 'owner'],
      [bea, 'member'],
    ])
    await db.updateTable('organization').set({ name }).where('id', '=', organization.id).execute()
    return { ada, bea, organization, id: organization.id }
  }
  const open = async (id: string) => {
    await page.goto(`${at}/organizations/${id}`)
    await page.getByRole('table').first().waitFor()
  }
  const press = (name: string, of: Pick<Page, 'getByRole'> = page) =>
    of.getByRole('button', { name, exact: true }).click()
  const dialog = page.getByRole('dialog')
  const row = (text: string) => page.getByRole('row').filter({ hasText: text })
  const trailOf = (organizationId: string) =>
    db
      .selectFrom('auditEvent')
      .select(['action', 'actorId', 'targetId'])
      .where('organizationId', '=', organizationId)
      .orderBy('id')
      .execute()
  const roleOf = async ({ id }: { readonly id: string }) =>
    (await db.selectFrom('member').select('role').where('userId', '=', id).executeTakeFirst())?.role
  const byRoot = (action: string, targetId: string) => ({ action, actorId: root.id, targetId })

  test('organizations are searched and paged by the address, and one of a million is found by a part of its name', async () => {
    for (let count = 0; count < 52; count++) await scene(`Team ${String(count).padStart(2, '0')}`)
    await page.goto(`${at}/organizations`)
    await page.getByText('1–50 of 52').waitFor()
    await press('Next')
    await page.getByText('51–52 of 52').waitFor()
    await page.getByRole('searchbox').fill('am 07')
    await page.getByText('1–1 of 1', { exact: true }).waitFor()
    await page.waitForURL(/search=am\+07$/)
    await page.reload()
    const found = page.getByRole('link', { name: 'Team 07' })
    await found.waitFor()
    await expectAccessible(page, 'the list')
    await expectZoomable(page, 'the list')
    await found.click()
    await page.getByRole('heading', { name: 'Team 07', level: 1 }).waitFor()
  })

  test('by keyboard alone the role of a member is changed, and a refused one leaves the form as it was', async () => {
    const { ada, bea, id } = await scene('Roles')
    await open(id)
    await expectAccessible(page, 'an organization')
    await expectZoomable(page, 'an organization')
    await row(ada.email).getByRole('button', { name: 'Change role' }).focus()
    await page.keyboard.press('Enter')
    await page.locator('dialog input:focus').waitFor()
    await page.keyboard.press('ControlOrMeta+a')
    await page.keyboard.type('member')
    await page.keyboard.press('Enter')
    await dialog.getByText('you_cannot_leave_the_organization_without_an_owner').waitFor()
    assert.equal(await dialog.getByLabel('Role').inputValue(), 'member')
    await expectAccessible(page, 'the dialog')
    await expectZoomable(page, 'the dialog')
    await page.keyboard.press('Escape')
    await row(bea.email).getByRole('button', { name: 'Change role' }).press('Enter')
    await dialog.getByLabel('Role').fill('owner')
    await page.keyboard.press('Enter')
    await page.getByText('Ada has the role owner').waitFor()
    assert.equal(await roleOf(bea), 'owner')
    assert.deepEqual(await trailOf(id), [byRoot('member.role_changed', bea.id)])
  })

  test('a member is removed after a question, and an act that the network loses can be repeated', async () => {
    const { bea, id } = await scene('Members')
    await open(id)
    await row(bea.email).getByRole('button', { name: 'Remove' }).click()
    await dialog.getByText(`${bea.email} loses the roles in Members`).waitFor()
    await page.route('**/admin/remove-member', (route) => route.abort())
    await press('Remove the member', dialog)
    await page.getByText('The service does not answer').waitFor()
    assert.equal(await roleOf(bea), 'member')
    await page.unrouteAll()
    await row(bea.email).getByRole('button', { name: 'Remove' }).click()
    await press('Remove the member', dialog)
    await page.getByText('1 member', { exact: true }).waitFor()
    assert.equal(await roleOf(bea), undefined)
    assert.deepEqual(await trailOf(id), [byRoot('member.removed', bea.id)])
  })

  test('an address is invited, mailed again, and the invitation canceled', async () => {
    const { id } = await scene('Guests')
    await open(id)
    await t.mails()
    await press('Invite')
    await dialog.getByLabel('Email').fill('guest@example.com')
    await dialog.getByLabel('Role').fill('guest')
    await press('Invite', dialog)
    await dialog.getByText('role_not_found').waitFor()
    assert.equal(await dialog.getByLabel('Email').inputValue(), 'guest@example.com')
    await dialog.getByLabel('Role').fill('member')
    await press('Invite', dialog)
    await row('guest@example.com').getByText('pending').waitFor()
    await press('Mail again')
    await page.getByText('guest@example.com gets another mail').waitFor()
    assert.equal((await t.mails()).filter((mail) => mail.includes('To: guest@example.com')).length, 2)
    await press('Cancel', row('guest@example.com'))
    await press('Cancel the invitation', dialog)
    await row('guest@example.com').getByText('canceled').waitFor()
    assert.deepEqual(await trailOf(id), [
      byRoot('invitation.created', id),
      byRoot('invitation.created', id),
      byRoot('invitation.canceled', id),
    ])
  })

  test('what was changed in the form is changed, and nothing else, with every digit of the metadata', async () => {
    const { id, organization } = await scene('Before')
    await db
      .updateTable('organization')
      .set({ metadata: '{"limit": 12345678901234567890, "note": "<b>"}' })
      .where('id', '=', id)
      .execute()
    await open(id)
    await page.locator('pre.metadata', { hasText: '12345678901234567890' }).waitFor()
    await press('Edit')
    await db
      .updateTable('organization')
      .set({ logo: 'https://example.com/a.png' })
      .where('id', '=', id)
      .execute()
    await dialog.getByLabel('Name').fill('After')
    await dialog.getByLabel('Metadata').fill('{"limit": 12345678901234567891')
    await press('Save', dialog)
    await dialog.getByRole('alert').waitFor()
    assert.equal(await dialog.getByLabel('Metadata').inputValue(), '{"limit": 12345678901234567891')
    await dialog.getByLabel('Metadata').fill('{"limit": 12345678901234567891}')
    await press('Save', dialog)
    await page.getByRole('heading', { name: 'After', level: 1 }).waitFor()
    const changed = await db
      .selectFrom('organization')
      .select(['name', 'slug', 'logo', (eb) => eb.cast<string>('metadata', 'text').as('metadata')])
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
    assert.deepEqual(changed, {
      ...{ name: 'After', slug: organization.slug, logo: 'https://example.com/a.png' },
      metadata: '{"limit": 12345678901234567891}',
    })
    assert.deepEqual(await trailOf(id), [byRoot('organization.updated', id)])
    await page.reload()
    await page.getByRole('region', { name: 'Last acts' }).getByText('organization.updated').waitFor()
    await page.getByRole('link', { name: 'All of it' }).click()
    await page.waitForURL(new RegExp(`/audit\\?organization=${id}$`))
    await page.getByRole('cell', { name: 'organization.updated' }).waitFor()
  })

  test('an organization is created for a user, and deleted after a question that names what is lost', async () => {
    const ada = await createPerson(t)
    await page.goto(`${at}/organizations`)
    await press('New organization')
    await dialog.getByLabel('Name').fill('Made')
    await dialog.getByLabel('Slug').fill('made')
    await dialog.getByLabel('Owner').fill('nobody@example.com')
    await press('Create', dialog)
    await dialog.getByText('There is no user with this email').waitFor()
    await dialog.getByLabel('Owner').fill(ada.email)
    await press('Create', dialog)
    await page.getByRole('heading', { name: 'Made', level: 1 }).waitFor()
    assert.equal(await roleOf(ada), 'owner')
    const id = page.url().split('/').at(-1) ?? ''
    await press('Delete')
    await dialog.getByText('Made is deleted with its memberships and invitations').waitFor()
    await press('Delete the organization', dialog)
    await page.getByText('Made was deleted').waitFor()
    assert.deepEqual(await db.selectFrom('organization').select('id').where('id', '=', id).execute(), [])
    assert.deepEqual(
      (await trailOf(id)).map(({ action, actorId }) => [action, actorId]),
      [
        ['organization.created', root.id],
        ['organization.deleted', root.id],
      ],
    )
  })

  test('long lists of members and invitations are paged by the address', async () => {
    const { ada, organization, id } = await scene('Large')
    const people = []
    for (let count = 0; count < 22; count++) people.push(await createPerson(t))
    const large = await createOrganization(
      t,
      people.map((person, index) => [person, index === 0 ? 'owner' : 'member'] as const),
    )
    for (let count = 0; count < 21; count++)
      await createInvitation(t, organization, { from: ada, to: `guest-${count}@example.com` })
    await open(large.id)
    await page.getByText('1–20 of 22').waitFor()
    await press('Next')
    await page.getByText('21–22 of 22').waitFor()
    await page.waitForURL(/members=20$/)
    await open(id)
    await page.getByText('1–20', { exact: true }).waitFor()
    await press('Next')
    await page.waitForURL(/invitations=20$/)
    await page.getByText('21–21', { exact: true }).waitFor()
  })

  test('hostile names are text, and everything fits 360 pixels', async () => {
    const { ada, organization, id } = await scene('x')
    const name = '<img src=/console/stolen onerror="document.title = `run`">abc\u202edef'
    await db
      .updateTable('organization')
      .set({ name, metadata: JSON.stringify({ [name]: name }) })
      .where('id', '=', id)
      .execute()
    await db.updateTable('user').set({ name }).where('id', '=', ada.id).execute()
    await createInvitation(t, organization, { from: ada, to: `${'long-'.repeat(40)}@example.com` })
    await open(id)
    await page.getByRole('heading', { level: 1, name: '<img src' }).waitFor()
    // In the heading, the metadata and the list of members.
    await page.locator('.code-point', { hasText: 'U+202E' }).nth(3).waitFor()
    await page.getByRole('region', { name: 'Last acts' }).waitFor()
    assert.equal(await page.locator('main img').count(), 0)
    await press('Delete')
    await dialog.locator('.code-point', { hasText: 'U+202E' }).first().waitFor()
    await press('Cancel', dialog)
    await page.setViewportSize({ width: 360, height: 740 })
    await expectNoOverflow(page, 'one organization')
    await expectAccessible(page, 'one organization at 360 px')
    await page.goto(`${at}/organizations`)
    await page.getByRole('table').waitFor()
    await expectNoOverflow(page, 'the list')
    await page.setViewportSize({ width: 1_280, height: 720 })
    for (const nothing of ['not-an-id', root.id]) {
      await page.goto(`${at}/organizations/${nothing}?members=x&invitations=-1`)
      await page.getByText('organization_not_found').waitFor()
    }
  })

  test('a person sees what their roles allow', async () => {
    const { bea, id } = await scene('Seen')
    const { page: reader } = await enter(await userOf(t, 'Rita', 'reader'), `/organizations/${id}`)
    await reader.getByRole('heading', { name: 'Seen', level: 1 }).waitFor()
    await reader.getByText('Metadata').waitFor()
    for (const name of ['Members', 'Invitations'])
      assert.equal(await reader.getByRole('region', { name }).count(), 0, 'no addresses of people')
    assert.equal(await reader.locator('main button').count(), 0)
    const { page: support } = await enter(await userOf(t, 'Sue', 'support'), `/organizations/${id}`)
    await support.getByText(bea.email).waitFor()
    assert.equal(await support.locator('main button').count(), 0)
    const { page: nobody } = await enter(await userOf(t, 'Una', 'user'), '/organizations')
    await nobody.getByRole('heading', { name: 'Nothing here' }).waitFor()
  })
}
