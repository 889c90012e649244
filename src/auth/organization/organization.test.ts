import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, testService } from '#test/harness.ts'
import { createOrganization, createPerson, type Person } from '#test/organizations.ts'
import { setFactor } from '#test/second-factor.ts'

const t = await testService({
  config: {
    auth: {
      admin: { roles: { clerk: { user: ['update'] } } },
      organization: {
        max_per_user: 3,
        roles: { editor: { member: ['update'] }, chief: { organization: ['delete'], member: ['update'] } },
      },
    },
  },
})
const { db } = t.service.kernel
const ORG = '/api/auth/organization'
const said = ({ status, body }: Answer) => [status, body?.code]
const activeOf = async (who: Person) =>
  (await who.get('/api/auth/get-session')).body.session.activeOrganizationId
const acts = async (organizationId: string) =>
  (
    await db
      .selectFrom('auditEvent')
      .select('action')
      .where('organizationId', '=', organizationId)
      .orderBy('id')
      .execute()
  ).map(({ action }) => action)

test('the creator of an organization owns it, and it becomes active unless the request says otherwise', async () => {
  const ada = await createPerson(t)
  const { body: acme } = await ada.post(`${ORG}/create`, {
    name: 'Acme',
    slug: ' Acme-1 ',
    logo: 'https://acme.example/logo.png',
    metadata: { plan: 'free' },
  })
  assert.deepEqual([acme.name, acme.slug, JSON.parse(acme.metadata)], ['Acme', 'acme-1', { plan: 'free' }])
  assert.deepEqual([acme.members[0].userId, acme.members[0].role], [ada.id, 'owner'])
  assert.equal(await activeOf(ada), acme.id)
  const quiet = await ada.post(`${ORG}/create`, { name: 'B', slug: 'b', keepCurrentActiveOrganization: true })
  assert.equal(quiet.status, 200)
  assert.equal(await activeOf(ada), acme.id)
  assert.deepEqual(
    (await ada.get(`${ORG}/list`)).body.map(({ slug }: { slug: string }) => slug),
    ['acme-1', 'b'],
  )
  assert.deepEqual(await acts(acme.id), ['organization.created'])
})

test('names, slugs, logos and metadata are checked, and a taken slug is refused', async () => {
  const ada = await createPerson(t)
  await ada.post(`${ORG}/create`, { name: 'Taken', slug: 'taken' })
  const bodies: readonly (readonly [object, string])[] = [
    [{ slug: 'TAKEN' }, 'ORGANIZATION_ALREADY_EXISTS'],
    [{ slug: 'a/b' }, 'VALIDATION_ERROR'],
    [{ slug: '' }, 'VALIDATION_ERROR'],
    [{ name: '' }, 'VALIDATION_ERROR'],
    [{ name: 'A\nB' }, 'VALIDATION_ERROR'],
    [{ logo: 'javascript:alert(1)' }, 'VALIDATION_ERROR'],
    [{ metadata: '[1]' }, 'VALIDATION_ERROR'],
    [{ metadata: '{"a"' }, 'VALIDATION_ERROR'],
    [{ metadata: { text: 'x'.repeat(20_000) } }, 'VALIDATION_ERROR'],
    [{ metadata: `{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}` }, 'VALIDATION_ERROR'],
  ]
  for (const [body, code] of bodies) {
    const answer = await ada.post(`${ORG}/create`, { name: 'New', slug: 'new', ...body })
    assert.deepEqual(said(answer), [400, code], JSON.stringify(body).slice(0, 100))
  }
  assert.deepEqual(said(await ada.post(`${ORG}/check-slug`, { slug: 'Taken' })), [
    400,
    'ORGANIZATION_SLUG_ALREADY_TAKEN',
  ])
  assert.equal((await ada.post(`${ORG}/check-slug`, { slug: 'free' })).body.status, true)
  assert.equal((await ada.get(`${ORG}/list`)).body.length, 1)
})

test('a user creates a limited number of organizations', async () => {
  const ada = await createPerson(t)
  for (const slug of ['l1', 'l2', 'l3'])
    assert.equal((await ada.post(`${ORG}/create`, { name: 'L', slug })).status, 200)
  const fourth = await ada.post(`${ORG}/create`, { name: 'L', slug: 'l4' })
  assert.deepEqual(said(fourth), [403, 'YOU_HAVE_REACHED_THE_MAXIMUM_NUMBER_OF_ORGANIZATIONS'])
})

test('an admin creates an organization for another user, and is no member of it', async () => {
  const [root, ada, bob] = [
    await createPerson(t, { role: 'admin' }),
    await createPerson(t),
    await createPerson(t),
  ]
  const made = await root.post(`${ORG}/create`, { name: 'For Ada', slug: 'for-ada', userId: ada.id })
  assert.deepEqual([made.status, made.body.members[0].userId], [200, ada.id])
  assert.equal(await activeOf(root), null)
  assert.equal(await activeOf(ada), null)
  assert.deepEqual((await root.get(`${ORG}/list`)).body, [])
  const others = await bob.post(`${ORG}/create`, { name: 'For Ada', slug: 'for-ada-2', userId: ada.id })
  assert.deepEqual(said(others), [403, 'YOU_ARE_NOT_ALLOWED_TO_CREATE_A_NEW_ORGANIZATION'])
  const nobody = await root.post(`${ORG}/create`, {
    name: 'N',
    slug: 'n',
    userId: root.id.replace(/.$/, 'f'),
  })
  assert.equal(nobody.status, root.id.endsWith('f') ? 200 : 404)
})

test('nobody creates an organization for a user with more permissions', async () => {
  const [clerk, root, ada] = [
    await createPerson(t, { role: 'clerk' }),
    await createPerson(t, { role: 'admin' }),
    await createPerson(t),
  ]
  const made = await clerk.post(`${ORG}/create`, { name: 'A', slug: 'by-clerk', userId: ada.id })
  assert.equal(made.status, 200, made.text)
  const refused = await clerk.post(`${ORG}/create`, { name: 'R', slug: 'by-clerk-2', userId: root.id })
  assert.deepEqual(said(refused), [403, 'YOU_ARE_NOT_ALLOWED_TO_CREATE_A_NEW_ORGANIZATION'])
  assert.deepEqual((await root.get(`${ORG}/list`)).body, [])
})

test('an unknown organization and one of others are refused alike', async () => {
  const [ada, eve] = [await createPerson(t), await createPerson(t)]
  const acme = await createOrganization(t, [[ada, 'owner']])
  const unknown = acme.id.replace(/.$/, acme.id.endsWith('0') ? '1' : '0')
  const asked = (organizationId: string): Promise<Answer>[] => [
    eve.get(`${ORG}/get-full-organization?organizationId=${organizationId}`),
    eve.post(`${ORG}/set-active`, { organizationId }),
    eve.post(`${ORG}/update`, { organizationId, data: { name: 'Mine' } }),
    eve.post(`${ORG}/delete`, { organizationId }),
    eve.post(`${ORG}/invite-member`, { organizationId, email: 'x@example.com', role: 'member' }),
    eve.post(`${ORG}/has-permission`, { organizationId, permissions: { member: ['create'] } }),
    eve.get(`${ORG}/list-members?organizationId=${organizationId}`),
  ]
  const answers = async (id: string) =>
    (await Promise.all(asked(id))).map(({ status, text }) => [status, text])
  const foreign = await answers(acme.id)
  assert.deepEqual(foreign, await answers(unknown))
  assert.deepEqual(foreign, await answers('not an id'))
  assert.ok(foreign.every(([status]) => status === 403))
  const bySlug = await Promise.all(
    [acme.slug, 'no-such'].map((slug) => eve.post(`${ORG}/set-active`, { organizationSlug: slug })),
  )
  assert.deepEqual(
    bySlug.map(({ text }) => text),
    [foreign[0]?.[1], foreign[0]?.[1]],
  )
})

test('set-active takes an id or a slug, and null unsets', async () => {
  const ada = await createPerson(t)
  const [acme, beta] = [
    await createOrganization(t, [[ada, 'owner']]),
    await createOrganization(t, [[ada, 'member']]),
  ]
  const active = async (body: object) => {
    const { status, body: answer } = await ada.post(`${ORG}/set-active`, body)
    return [status, answer?.id ?? answer, await activeOf(ada)]
  }
  assert.deepEqual(await active({ organizationId: acme.id }), [200, acme.id, acme.id])
  assert.deepEqual(await active({ organizationSlug: beta.slug }), [200, beta.id, beta.id])
  assert.deepEqual(await active({ organizationId: null, organizationSlug: acme.slug }), [200, null, null])
  assert.deepEqual(await active({ organizationId: acme.id, organizationSlug: null }), [200, acme.id, acme.id])
  assert.deepEqual(await active({ organizationSlug: null }), [200, null, null])
  assert.deepEqual(await active({ organizationId: acme.id }), [200, acme.id, acme.id])
  assert.deepEqual(await active({}), [200, acme.id, acme.id], 'without either nothing changes')
})

test('without an active organization reads answer null or 400', async () => {
  const ada = await createPerson(t)
  assert.equal((await ada.get(`${ORG}/get-full-organization`)).body, null)
  assert.equal((await ada.get(`${ORG}/get-organization`)).body, null)
  const refused = [
    await ada.get(`${ORG}/get-active-member`),
    await ada.get(`${ORG}/get-active-member-role`),
    await ada.get(`${ORG}/list-members`),
    await ada.post(`${ORG}/has-permission`, { permissions: { member: ['create'] } }),
  ]
  for (const answer of refused) assert.deepEqual(said(answer), [400, 'NO_ACTIVE_ORGANIZATION'])
})

test('an update changes the given fields only, and owners alone require a second factor', async () => {
  const [ada, bea] = [await createPerson(t), await createPerson(t)]
  const acme = await createOrganization(t, [
    [ada, 'owner'],
    [bea, 'admin'],
  ])
  const update = (who: Person, data: object) => who.post(`${ORG}/update`, { data })
  const { body } = await update(bea, {
    metadata: '{"a":1}',
    slug: `${acme.slug}-2`,
    memberCount: 7,
    id: bea.id,
  })
  assert.deepEqual(
    [body.id, body.name, body.slug, JSON.parse(body.metadata)],
    [acme.id, 'Acme', `${acme.slug}-2`, { a: 1 }],
  )
  assert.deepEqual(said(await update(bea, { id: bea.id })), [400, 'NO_FIELDS_TO_UPDATE'])
  assert.deepEqual(said(await update(bea, { requireTwoFactor: true })), [
    403,
    'YOU_ARE_NOT_ALLOWED_TO_UPDATE_THIS_ORGANIZATION',
  ])
  const other = await createOrganization(t, [[bea, 'owner']])
  const taken = await update(bea, { slug: `${acme.slug}-2` })
  assert.deepEqual(said(taken), [400, 'ORGANIZATION_SLUG_ALREADY_TAKEN'])
  assert.deepEqual(await acts(other.id), [])
})

test('an organization that requires a second factor is active only in sessions with one', async () => {
  const [ada, bea] = [await createPerson(t), await createPerson(t)]
  await setFactor(t, ada, true)
  const acme = await createOrganization(t, [
    [ada, 'owner'],
    [bea, 'member'],
  ])
  assert.equal(
    (await ada.post(`${ORG}/update`, { data: { requireTwoFactor: true } })).body.requireTwoFactor,
    true,
  )
  assert.deepEqual([await activeOf(ada), await activeOf(bea)], [acme.id, null])
  assert.deepEqual(said(await bea.post(`${ORG}/set-active`, { organizationId: acme.id })), [
    403,
    'TWO_FACTOR_REQUIRED',
  ])
  assert.equal((await bea.get(`${ORG}/get-organization?organizationId=${acme.id}`)).status, 200)
  const beta = await createOrganization(t, [[bea, 'owner']])
  assert.equal(await activeOf(bea), beta.id, 'other organizations stay open')
  await setFactor(t, ada, false)
  assert.equal(await activeOf(ada), null, 'it ends with the factor')
})

test('a deleted organization is active nowhere, and its members and invitations are gone', async () => {
  const [ada, bea] = [await createPerson(t), await createPerson(t)]
  const acme = await createOrganization(t, [
    [ada, 'owner'],
    [bea, 'member'],
  ])
  await ada.post(`${ORG}/invite-member`, { email: 'later@example.com', role: 'member' })
  const gone = await ada.post(`${ORG}/delete`, { organizationId: acme.id })
  assert.deepEqual([gone.status, gone.text], [200, JSON.stringify(acme.id)])
  assert.deepEqual([await activeOf(ada), await activeOf(bea)], [null, null])
  assert.deepEqual(
    await db.selectFrom('invitation').select('id').where('organizationId', '=', acme.id).execute(),
    [],
  )
  assert.deepEqual(await acts(acme.id), ['invitation.created', 'organization.deleted'])
})

test('get-full-organization shows invitations to members who may invite only', async () => {
  const [ada, bea] = [await createPerson(t), await createPerson(t)]
  await createOrganization(t, [
    [ada, 'owner'],
    [bea, 'member'],
  ])
  await ada.post(`${ORG}/invite-member`, { email: 'full@example.com', role: 'member' })
  const full = async (who: Person, query = '') => (await who.get(`${ORG}/get-full-organization${query}`)).body
  const asOwner = await full(ada)
  assert.deepEqual(
    asOwner.members.map(({ user }: { user: { email: string } }) => user.email),
    [ada.email, bea.email],
  )
  assert.deepEqual(Object.keys(asOwner.members[0].user), ['id', 'name', 'email', 'emailVerified', 'image'])
  assert.equal(asOwner.invitations.length, 1)
  assert.deepEqual((await full(bea)).invitations, [])
  assert.equal((await full(bea, '?membersLimit=1')).members.length, 1)
})

test('permissions are those of one role, and unknown ones are not granted', async () => {
  const [ada, bea, cem] = [await createPerson(t), await createPerson(t), await createPerson(t)]
  await createOrganization(t, [
    [ada, 'owner'],
    [bea, 'editor,chief'],
    [cem, 'admin'],
  ])
  const has = async (who: Person, permissions: unknown, name = 'permissions') =>
    (await who.post(`${ORG}/has-permission`, { [name]: permissions })).body.success
  assert.equal(await has(ada, { organization: ['update', 'delete'], member: ['create'] }), true)
  assert.equal(await has(cem, { organization: ['delete'] }), false)
  assert.equal(
    await has(cem, { organization: ['update'], invitation: ['create', 'cancel'] }, 'permission'),
    true,
  )
  assert.equal(await has(bea, { member: ['update'], organization: ['delete'] }), true)
  assert.equal(await has(bea, { member: ['update', 'create'] }), false)
  for (const nothing of [
    {},
    { member: [] },
    { planet: ['create'] },
    { member: ['fly'] },
    { toString: ['x'] },
  ])
    assert.equal(await has(ada, nothing), false, JSON.stringify(nothing))
  assert.deepEqual(said(await ada.post(`${ORG}/has-permission`, {})), [400, 'VALIDATION_ERROR'])
})
