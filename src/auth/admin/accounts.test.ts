import assert from 'node:assert/strict'
import { test } from 'node:test'
import { insertLinkedAccount } from '#identity/linked-accounts.ts'
import { createAuthenticator } from '#test/authenticator.ts'
import { testService } from '#test/harness.ts'
import { createOrganization, createPerson } from '#test/organizations.ts'
import { ceremoniesOf } from '#test/passkeys.ts'
import { enrolTotp } from '#test/second-factor.ts'

const t = await testService({
  config: {
    auth: {
      admin: {
        roles: { reader: { user: ['get'] }, lister: { organization: ['list'] }, strong: { user: ['ban'] } },
      },
    },
  },
})
const { db, now, random } = t.service.kernel
const reader = await createPerson(t, { role: 'reader' })

const accountsOf = (userId: string) => reader.get(`/api/auth/admin/list-user-accounts?userId=${userId}`)
const factorsOf = (userId: string) => reader.get(`/api/auth/admin/list-user-factors?userId=${userId}`)

test('the accounts of a user are shown without hashes and tokens', async () => {
  const ada = await t.signUp('Ada')
  const named = { providerId: 'github', accountId: '4711' }
  const tokens = {
    accessToken: 'marked access token',
    refreshToken: 'marked refresh token',
    scopes: ['read:user'],
  }
  const linked = await insertLinkedAccount(t.service.kernel, ada.id, named, tokens)
  const { status, body, text } = await accountsOf(ada.id)
  assert.equal(status, 200, text)
  const [password, github] = body.accounts
  assert.deepEqual([password.providerId, github.providerId], ['credential', 'github'])
  assert.deepEqual(github, {
    ...{ id: linked?.id, ...named, scopes: ['read:user'] },
    ...{ createdAt: linked?.createdAt.toISOString(), updatedAt: linked?.updatedAt.toISOString() },
  })
  const row = await db.selectFrom('account').selectAll().where('userId', '=', ada.id).execute()
  const hidden = row
    .flatMap((one) => [one.password, one.sealedAccessToken, one.sealedRefreshToken])
    .filter((one) => one !== null)
  assert.equal(hidden.length, 3)
  for (const secret of hidden) assert.ok(!text.includes(secret), secret)
})

test('the factors of a user are shown without secrets, codes and keys', async () => {
  const plain = await t.signUp('Plain')
  assert.deepEqual((await factorsOf(plain.id)).body, { twoFactor: null, passkeys: [], trustedDevices: 0 })

  const { user } = await ceremoniesOf(t).newUser('Eve')
  const second = await ceremoniesOf(t).register(user, createAuthenticator(), { name: 'Blue key' })
  assert.equal(second.status, 200, second.text)
  const enrolled = await enrolTotp(t, user)
  const { body, text, status } = await factorsOf(user.id)
  assert.equal(status, 200, text)
  assert.deepEqual([body.twoFactor.method, body.twoFactor.backupCodes], ['totp', enrolled.backupCodes.length])
  assert.deepEqual(body.passkeys.filter(({ name }: { name: string | null }) => name === 'Blue key').length, 1)
  assert.deepEqual(Object.keys(body.passkeys[0]).toSorted(), [
    'backedUp',
    'createdAt',
    'deviceType',
    'id',
    'name',
  ])
  const keys = await db.selectFrom('passkey').selectAll().where('userId', '=', user.id).execute()
  const [factor] = await db.selectFrom('twoFactor').selectAll().where('userId', '=', user.id).execute()
  assert.equal(keys.length, 2)
  for (const secret of [
    enrolled.secret,
    factor?.secret ?? assert.fail(),
    ...enrolled.backupCodes,
    ...keys.flatMap(({ publicKey, credentialId }) => [publicKey, credentialId]),
  ])
    assert.ok(!text.includes(secret), secret)
})

test('only devices whose trust has not expired count', async () => {
  const ada = await t.signUp('Ada')
  const device = (ahead: number) => ({
    id: `01a1fed6-8936-7ac3-bdf5-0000000000${10 + ahead}`,
    userId: ada.id,
    tokenHash: random(32),
    expiresAt: new Date(now().getTime() + (ahead - 1) * 60_000),
    createdAt: now(),
  })
  await db
    .insertInto('trustedDevice')
    .values([device(0), device(2), device(3)])
    .execute()
  assert.equal((await factorsOf(ada.id)).body.trustedDevices, 2)
})

test('neither is shown of a user who may do more, or of none', async () => {
  const strong = await createPerson(t, { role: 'strong' })
  for (const read of [accountsOf, factorsOf]) {
    const refused = await read(strong.id)
    assert.deepEqual([refused.status, refused.body.code], [403, 'YOU_ARE_NOT_ALLOWED_TO_GET_USER'])
    for (const id of ['01a1fed6-8936-7ac3-bdf5-000000000000', 'none'])
      assert.equal((await read(id)).body.code, 'USER_NOT_FOUND')
  }
})

test('all organizations are listed with the number of their members, a page at a time', async () => {
  const lister = await createPerson(t, { role: 'lister' })
  const people = await Promise.all([1, 2, 3].map(() => createPerson(t)))
  const [one, two, three] = people
  assert.ok(one && two && three)
  const made = [
    await createOrganization(t, [[one, 'owner']]),
    await createOrganization(t, [[three, 'owner']]),
    await createOrganization(t, [
      [two, 'owner'],
      [one, 'member'],
      [three, 'member'],
    ]),
  ].toSorted((one, other) => (one.id < other.id ? 1 : -1))
  const sizes = made.map(({ id, memberIds }) => [id, memberIds.size])
  const list = (query: string) => lister.get(`/api/auth/admin/list-organizations${query}`)
  const { status, body, text } = await list('')
  assert.equal(status, 200, text)
  assert.deepEqual(
    body.organizations.map(({ id, memberCount }: { id: string; memberCount: number }) => [id, memberCount]),
    sizes,
  )
  assert.equal(body.total, 3)
  const page = await list('?limit=1&offset=1')
  assert.deepEqual(
    [page.body.organizations[0].id, page.body.total, page.body.limit, page.body.offset],
    [made[1]?.id, 3, 1, 1],
  )
  const found = await list(`?searchValue=${made[0]?.slug}`)
  assert.deepEqual([found.body.organizations[0].id, found.body.total], [made[0]?.id, 1])
  assert.equal((await list('?searchValue=%25')).body.total, 0, 'a sign of LIKE is a letter')
  assert.equal(body.organizations[0].metadata, undefined)
  assert.equal((await reader.get('/api/auth/admin/list-organizations')).status, 403)
})

test('the organizations of a user are listed with the roles there', async () => {
  const lister = await createPerson(t, { role: 'lister' })
  const [one, two] = [await createPerson(t), await createPerson(t)]
  const own = await createOrganization(t, [[one, 'owner']])
  const joined = await createOrganization(t, [
    [two, 'owner'],
    [one, 'member'],
  ])
  const list = (id: string, query = '') =>
    lister.get(`/api/auth/admin/list-user-organizations?userId=${id}${query}`)
  const { status, body, text } = await list(one.id)
  assert.equal(status, 200, text)
  assert.deepEqual(
    body.organizations.map(({ id, slug, role }: Record<string, string>) => [id, slug, role]).toSorted(),
    [
      [own.id, own.slug, 'owner'],
      [joined.id, joined.slug, 'member'],
    ].toSorted(),
  )
  assert.equal((await list(one.id, '&limit=1')).body.organizations.length, 1)
  assert.deepEqual((await list((await createPerson(t)).id)).body, { organizations: [] })
  assert.equal((await list('none')).body.code, 'USER_NOT_FOUND')
  const refused = await reader.get(`/api/auth/admin/list-user-organizations?userId=${one.id}`)
  assert.equal(refused.body.code, 'YOU_ARE_NOT_ALLOWED_TO_LIST_ORGANIZATIONS')
})
