import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Actor,
  actor,
  linkIn,
  PASSWORD,
  type TestService,
  testService,
  type User,
} from '#test/harness.ts'
import { createPerson } from '#test/organizations.ts'
import { codeOf, enrolTotp, pendingSignIn, signedInAs } from '#test/second-factor.ts'

const AUTH = '/api/auth'
const t = await testService()
const restarted = (initial: 'only' | 'none') =>
  testService({ controlUrl: t.controlUrl, config: { auth: { organization: { initial } } } })
const [only, none] = [await restarted('only'), await restarted('none')]
const { db } = t.service.kernel

/** The organization that a new session of the user begins with. */
async function begins({ email }: User, at: TestService = t): Promise<string | null> {
  const { token } = (await at.anon.post(`${AUTH}/sign-in/email`, { email, password: PASSWORD })).body
  return (await actor(at.url, { authorization: `Bearer ${token}` }).get(`${AUTH}/get-session`)).body.session
    .activeOrganizationId
}

let count = 0
/** Creates an organization, which becomes active. */
async function create(who: Actor, more: object = {}): Promise<string> {
  const slug = `initial-${++count}`
  const { status, body } = await who.post(`${AUTH}/organization/create`, { name: slug, slug, ...more })
  assert.equal(status, 200)
  return body.id
}
const activate = async (who: Actor, organizationId: string | null) => {
  const answer = await who.post(`${AUTH}/organization/set-active`, { organizationId })
  assert.equal(answer.status, 200, answer.text)
}

test('a new session begins with the organization that was active last in any session of the user', async () => {
  const ada = await t.signUp('Ada')
  assert.equal(await begins(ada), null)
  const first = await create(ada)
  assert.equal(await begins(ada), first)
  const second = await create(ada)
  const other = await create(ada, { keepCurrentActiveOrganization: true })
  assert.notEqual(other, second)
  assert.equal(await begins(ada), second)
  await activate(ada, first)
  assert.equal(await begins(ada), first)
  // None is no organization.
  await activate(ada, null)
  assert.equal(await begins(ada), first)
  await ada.post(`${AUTH}/sign-out`)
  assert.equal(await begins(ada), first)
})

test('only says the only organization of the user, and none says none', async () => {
  const ada = await t.signUp('Ada')
  const first = await create(ada)
  await activate(ada, null)
  assert.deepEqual([await begins(ada, only), await begins(ada, none)], [first, null])
  await create(ada)
  assert.deepEqual([await begins(ada, only), await begins(ada, none)], [null, null])
})

test('an organization that the user has left, or that is gone, is the last one no more', async () => {
  const [olga, ada] = [await t.signUp('Olga'), await t.signUp('Ada')]
  const [own, gone, left] = [await create(ada), await create(ada), await create(olga)]
  const now = new Date()
  const member = {
    id: crypto.randomUUID(),
    organizationId: left,
    userId: ada.id,
    role: 'member',
    createdAt: now,
  }
  await db.insertInto('member').values(member).execute()
  await activate(ada, left)
  assert.equal(await begins(ada), left)
  assert.equal((await ada.post(`${AUTH}/organization/leave`, { organizationId: left })).status, 200)
  assert.equal(await begins(ada), gone)
  assert.equal((await ada.post(`${AUTH}/organization/delete`, { organizationId: gone })).status, 200)
  assert.equal(await begins(ada), own)
})

test('the first proof of an address without its owner forgets the last one, which a stranger may have chosen', async () => {
  const ada = await t.signUp('Ada')
  const first = await create(ada)
  const reset = async () => {
    await t.mails()
    await t.anon.post(`${AUTH}/forget-password`, { email: ada.email })
    const token = linkIn((await t.mails()).at(-1) ?? '')
      .split('/')
      .at(-1)
    const body = { token, newPassword: PASSWORD }
    assert.equal((await t.anon.post(`${AUTH}/reset-password`, body)).status, 200)
  }
  await reset()
  assert.equal(await begins(ada), null)
  const again = await signedInAs(t, ada.email)
  await activate(again, first)
  await reset()
  assert.equal(await begins(ada), first, 'it was no first proof')
})

test('one that requires a second factor is active only in a session that has shown one, and no other takes its place', async () => {
  const signedUp = await t.signUp('Ada')
  await create(signedUp)
  const strict = await create(signedUp)
  await db.updateTable('organization').set({ requireTwoFactor: true }).where('id', '=', strict).execute()
  assert.equal(await begins(signedUp), null)
  const ada = await enrolTotp(t, signedUp)
  await activate(ada, strict)
  const { token } = (await pendingSignIn(t.anon, ada.email)).body
  const shown = await t.anon.post(`${AUTH}/two-factor/verify-totp`, { token, code: codeOf(t, ada.secret) })
  assert.equal(shown.status, 200, shown.text)
  const session = actor(t.url, { authorization: `Bearer ${shown.body.token}` })
  assert.equal((await session.get(`${AUTH}/get-session`)).body.session.activeOrganizationId, strict)
})

test('an impersonation changes no last one', async () => {
  const ada = await t.signUp('Ada')
  const [first, second] = [await create(ada), await create(ada)]
  const root = await createPerson(t, { role: 'admin' })
  const { body } = await root.post(`${AUTH}/admin/impersonate-user`, { userId: ada.id })
  await activate(actor(t.url, { authorization: `Bearer ${body.session.token}` }), first)
  assert.equal(await begins(ada), second)
})

test('a sign-in while the organization is deleted succeeds, with it or without', async () => {
  for (let round = 0; round < 5; round++) {
    const ada = await t.signUp('Ada')
    const organizationId = await create(ada)
    const [deleted, ...active] = await Promise.all([
      ada.post(`${AUTH}/organization/delete`, { organizationId }),
      ...Array.from({ length: 4 }, () => begins(ada)),
    ])
    assert.equal(deleted.status, 200)
    for (const each of active) assert.ok(each === null || each === organizationId)
    assert.equal(await begins(ada), null)
  }
})
