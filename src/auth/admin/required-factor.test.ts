import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type Answer, PASSWORD, testService } from '#test/harness.ts'
import { heldRows } from '#test/held-rows.ts'
import { createOrganization, createPerson, type Person } from '#test/organizations.ts'
import { setFactor } from '#test/second-factor.ts'

const t = await testService({
  config: { auth: { admin: { roles: { guarded: {} } }, two_factor: { required_for: ['guarded'] } } },
})
const { db } = t.service.kernel
const rows = heldRows(t.controlUrl)
after(() => rows.close())

type Scene = { readonly root: Person; readonly ada: Person; readonly organizationId: string }
async function scene(role: string): Promise<Scene> {
  const [root, ada] = [await createPerson(t, { role }), await createPerson(t)]
  const { id: organizationId } = await createOrganization(t, [[ada, 'owner']])
  await setFactor(t, root, role.includes('guarded'))
  return { root, ada, organizationId }
}
const ADMIN = '/api/auth/admin'
const VERBS: Readonly<Record<string, (scene: Scene) => Promise<Answer>>> = {
  ban: ({ root, ada }) => root.post(`${ADMIN}/ban-user`, { userId: ada.id }),
  role: ({ root, ada }) => root.post(`${ADMIN}/set-role`, { userId: ada.id, role: 'admin' }),
  add: ({ root, ada }) =>
    root.post(`${ADMIN}/create-user`, { name: 'Eve', email: `eve-${ada.email}`, password: PASSWORD }),
  impersonate: ({ root, ada }) => root.post(`${ADMIN}/impersonate-user`, { userId: ada.id }),
  'delete an organization': ({ root, organizationId }) =>
    root.post(`${ADMIN}/delete-organization`, { organizationId }),
  'create an organization': ({ root, ada }) =>
    root.post('/api/auth/organization/create', { name: 'A', slug: `s-${ada.id}`, userId: ada.id }),
}
/** The answer to a verb that waits for the admin's row while the statement changes something. */
const during = (verb: (scene: Scene) => Promise<Answer>, made: Scene, change: string) =>
  rows.during(made.root.id, () => verb(made), change)
const said = ({ status, body }: Answer) => [status, body?.code]
const REFUSED = [403, 'TWO_FACTOR_REQUIRED']

test('a role that requires a second factor counts for a verb that has begun before', async () => {
  for (const [name, verb] of Object.entries(VERBS)) {
    const made = await scene('admin')
    const change = `update service."user" set role = 'admin,guarded' where id = $1`
    assert.deepEqual(said(await during(verb, made, change)), REFUSED, name)
    await assertUntouched(made)
  }
})

test('so does the loss of the second factor', async () => {
  for (const [name, verb] of Object.entries(VERBS)) {
    const made = await scene('admin,guarded')
    const change = 'update service."user" set two_factor_enabled = false where id = $1'
    assert.deepEqual(said(await during(verb, made, change)), REFUSED, name)
    await assertUntouched(made)
  }
})

test('an admin whose session has shown the factor acts', async () => {
  const made = await scene('admin,guarded')
  assert.equal((await VERBS.ban?.(made))?.status, 200)
})

test('a code of an impersonation is worth nothing once the admin’s session lacks the factor', async () => {
  const { root, ada } = await scene('admin')
  const { body } = await root.post(`${ADMIN}/impersonate-user`, { userId: ada.id, handoff: true })
  await db.updateTable('user').set({ role: 'admin,guarded' }).where('id', '=', root.id).execute()
  const exchanged = await t.anon.post(`${ADMIN}/exchange-handoff`, { code: body.code })
  assert.deepEqual(said(exchanged), [400, 'INVALID_HANDOFF_CODE'])
})

async function assertUntouched({ ada, organizationId }: Scene): Promise<void> {
  const user = await db
    .selectFrom('user')
    .select(['role', 'banned'])
    .where('id', '=', ada.id)
    .executeTakeFirst()
  assert.deepEqual(user, { role: 'user', banned: false })
  const ids = await db.selectFrom('session').select('id').where('userId', '=', ada.id).execute()
  assert.equal(ids.length, 1)
  assert.ok(
    await db.selectFrom('organization').select('id').where('id', '=', organizationId).executeTakeFirst(),
  )
}
