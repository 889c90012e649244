import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { browser } from '#test/cookie-jar.ts'
import { type Answer, testService } from '#test/harness.ts'
import { heldRows } from '#test/held-rows.ts'
import { createOrganization, createPerson, type Person } from '#test/organizations.ts'
import { setFactor } from '#test/second-factor.ts'

const t = await testService({
  config: {
    auth: {
      admin: { roles: { guarded: {} } },
      two_factor: { required_for: ['guarded'] },
      one_time_token: { enabled: true },
      device: { clients: { tv: {} } },
    },
  },
})
const rows = heldRows(t.controlUrl)
after(() => rows.close())

const AUTH = '/api/auth'
type Scene = { readonly ada: Person; readonly organizationId: string; readonly userCode: string }
async function scene(role: string): Promise<Scene> {
  const ada = await createPerson(t, { role })
  const { id: organizationId } = await createOrganization(t, [[ada, 'owner']])
  await setFactor(t, ada, role === 'guarded')
  const { body } = await t.anon.post(`${AUTH}/device/code`, { client_id: 'tv' })
  return { ada, organizationId, userCode: body.user_code }
}
const VERBS: Readonly<Record<string, (scene: Scene) => Promise<Answer>>> = {
  profile: ({ ada }) => ada.post(`${AUTH}/update-user`, { name: 'Other' }),
  invitation: ({ ada, organizationId }) =>
    ada.post(`${AUTH}/organization/invite-member`, {
      email: 'eve@example.com',
      role: 'member',
      organizationId,
    }),
  deletion: ({ ada, organizationId }) => ada.post(`${AUTH}/organization/delete`, { organizationId }),
  'one-time token': ({ ada }) => ada.get(`${AUTH}/one-time-token/generate`),
  device: ({ ada, userCode }) => ada.post(`${AUTH}/device/approve`, { userCode }),
  sessions: ({ ada }) => ada.post(`${AUTH}/revoke-other-sessions`),
}
/** The answer to a verb that waits for the user's row while the statement changes something. */
const during = (verb: (scene: Scene) => Promise<Answer>, made: Scene, change: string) =>
  rows.during(made.ada.id, () => verb(made), change)
const said = ({ status, body }: Answer) => [status, body?.code]
const REFUSED = [403, 'TWO_FACTOR_REQUIRED']

test('a role that requires a second factor counts for what a session does, also when it comes during the verb', async () => {
  for (const [name, verb] of Object.entries(VERBS)) {
    const change = `update service."user" set role = 'guarded' where id = $1`
    assert.deepEqual(said(await during(verb, await scene('user'), change)), REFUSED, name)
  }
})

test('so does the loss of the second factor', async () => {
  for (const [name, verb] of Object.entries(VERBS)) {
    const change = 'update service."user" set two_factor_enabled = false where id = $1'
    assert.deepEqual(said(await during(verb, await scene('guarded'), change)), REFUSED, name)
  }
})

test('a session that has shown the factor acts, and one without it signs out', async () => {
  for (const [name, verb] of Object.entries(VERBS))
    assert.equal((await verb(await scene('guarded'))).status, 200, name)
  const signOut = ({ ada }: Scene) => ada.post(`${AUTH}/sign-out`)
  const change = `update service."user" set role = 'guarded' where id = $1`
  assert.equal((await during(signOut, await scene('user'), change)).status, 200)
})

test('a browser whose sessions are not revoked for that keeps its cookie', async () => {
  const made = await scene('user')
  const own = browser(t, made.ada)
  const revoke = () => own.post(`${AUTH}/revoke-sessions`)
  const change = `update service."user" set role = 'guarded' where id = $1`
  assert.deepEqual(said(await during(revoke, made, change)), REFUSED)
  assert.deepEqual([...own.jar.values()], [made.ada.token])
})
