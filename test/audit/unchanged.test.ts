import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, testService } from '#test/harness.ts'
import { createOrganization, createPerson } from '#test/organizations.ts'
import { ceremoniesOf } from '#test/passkeys.ts'

const t = await testService()
const { db } = t.service.kernel
const passkeys = ceremoniesOf(t)
const root = await createPerson(t, { role: 'admin' })
const FOR_CLIENT = { headers: { 'x-service-client': 'default' } }

type Act = () => Promise<Answer>
const asAdmin =
  (verb: string, more: object = {}) =>
  async (): Promise<Act> => {
    const { id: userId } = await createPerson(t)
    return () => root.post(`/api/auth/admin/${verb}`, { userId, ...more })
  }
const patch = (path: string, body: object) => () => t.admin.send('PATCH', path, { body })
const idOf = ({ body, text }: Answer): string => {
  assert.ok(body.data, text)
  return body.data.id ?? body.data.record.id
}
const inOrganization = (work: (who: Awaited<ReturnType<typeof scene>>) => Act) => async () =>
  work(await scene())
async function scene() {
  const [ada, bea] = [await createPerson(t), await createPerson(t)]
  const { id: organizationId, memberIds } = await createOrganization(t, [
    [ada, 'owner'],
    [bea, 'member'],
  ])
  return { ada, organizationId, memberId: memberIds.get(bea) }
}

const ABSENT = 'end of a setting that is not there'
/** Acts that change nothing when they are done again. */
const REPEATABLE: Readonly<Record<string, () => Promise<Act>>> = {
  'update-user': async () => {
    const ada = await createPerson(t)
    return () =>
      ada.post('/api/auth/update-user', { name: 'New', image: null, username: `u${ada.id.slice(-9)}` })
  },
  'update-user of an admin': asAdmin('update-user', { data: { name: 'New', emailVerified: true } }),
  'set-role': asAdmin('set-role', { role: 'admin' }),
  'ban-user': asAdmin('ban-user', { banReason: 'spam' }),
  'unban-user': asAdmin('unban-user'),
  'revoke-user-sessions': asAdmin('revoke-user-sessions'),
  'update of an organization': inOrganization(({ ada }) => {
    const data = { name: 'New', metadata: { a: 1, b: [2] }, requireTwoFactor: false }
    return () => ada.post('/api/auth/organization/update', { data })
  }),
  'update-member-role': inOrganization(({ ada, organizationId, memberId }) => {
    const body = { organizationId, memberId, role: 'admin' }
    return () => ada.post('/api/auth/organization/update-member-role', body)
  }),
  'update-passkey': async () => {
    const { user, passkey } = await passkeys.newUser('Ada')
    return () => user.post('/api/auth/passkey/update-passkey', { id: passkey.id, name: 'New' })
  },
  'change of a key': async () => {
    const key = { name: 'k', client_name: 'default', rights: ['notes.read'] }
    const id = idOf(await t.admin.post('/admin/api-keys', key))
    return patch(`/admin/api-keys/${id}`, { is_active: false, rights: ['notes.read'], expires_at: null })
  },
  'enforcement of keys': async () => () =>
    t.admin.send('PUT', '/admin/api-key-clients/default', { body: { enforce_api_keys: true } }),
  [ABSENT]: async () => () => t.admin.send('DELETE', '/admin/api-key-clients/nowhere'),
  'change of a public route': async () => {
    const route = { route_key: 'unchanged', client_name: 'default', allowed_ops: ['fetch'] }
    idOf(await t.admin.post('/admin/public-routes', route))
    return patch('/admin/public-routes/unchanged', { is_active: false, allowed_ops: ['fetch'] })
  },
  'change of a webhook': async () => {
    const webhook = { route_key: 'gateway_insert', url: 'https://hooks.example.com/a' }
    const id = idOf(await t.admin.post('/admin/webhooks', webhook, FOR_CLIENT))
    return () =>
      t.admin.send('PATCH', `/admin/webhooks/${id}`, {
        body: { is_active: false, url: webhook.url },
        ...FOR_CLIENT,
      })
  },
  'change of a client': async () => {
    const client = { client_name: 'unchanged', driver: 'postgresql', url: t.clientUrl }
    const registered = await t.admin.post('/admin/clients', client)
    assert.ok(registered.status < 300, registered.text)
    return patch('/admin/clients/unchanged', { description: 'New' })
  },
}

const countRows = async () => (await db.selectFrom('auditEvent').select('id').execute()).length

for (const [name, prepare] of Object.entries(REPEATABLE))
  test(`${name}: done again it changes nothing and leaves no row`, async () => {
    const act = await prepare()
    const first = await act()
    assert.equal(first.status, name === ABSENT ? 404 : 200, first.text)
    const before = await countRows()
    const { status, text } = await act()
    assert.equal(status, first.status, text)
    assert.equal(await countRows(), before)
  })

test('the row of a change names the fields that have changed, and no others', async () => {
  const ada = await createPerson(t)
  const data = { name: 'Ada', image: 'https://example.com/a.png' }
  await root.post('/api/auth/admin/update-user', { userId: ada.id, data })
  const rows = await db.selectFrom('auditEvent').select('details').where('targetId', '=', ada.id).execute()
  assert.deepEqual(rows, [{ details: { fields: ['image'] } }])
})

test('a setting that is removed leaves a row, and one that is not there none', async () => {
  const path = '/admin/api-key-clients/default'
  await t.admin.send('PUT', path, { body: { enforce_api_keys: true } })
  const before = await countRows()
  assert.equal((await t.admin.send('DELETE', path)).status, 200)
  assert.equal(await countRows(), before + 1)
  assert.equal((await t.admin.send('DELETE', path)).status, 404)
  assert.equal(await countRows(), before + 1)
})
