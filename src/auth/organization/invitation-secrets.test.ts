import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { createAuthenticator } from '#test/authenticator.ts'
import {
  type Actor,
  type Answer,
  actor,
  BROWSER,
  confirm,
  linkIn,
  PASSWORD,
  testService,
} from '#test/harness.ts'
import { createOrganization, createPerson, type Person } from '#test/organizations.ts'
import { ceremoniesOf } from '#test/passkeys.ts'

const t = await testService()
const { db } = t.service.kernel
const ceremonies = ceremoniesOf(t)
const ORG = '/api/auth/organization'
const said = ({ status, body }: Answer) => (status === 200 ? 200 : body?.code)
const invite = (by: Actor, email: string, role = 'member') => by.post(`${ORG}/invite-member`, { email, role })
const accept = async (by: Actor, invitationId: string) =>
  said(await by.post(`${ORG}/accept-invitation`, { invitationId }))
const statusOf = async (id: string) =>
  (await db.selectFrom('invitation').select('status').where('id', '=', id).executeTakeFirst())?.status
const isProven = async (id: string) =>
  (await db.selectFrom('user').select('emailProvenAt').where('id', '=', id).executeTakeFirst())
    ?.emailProvenAt != null
const isAlive = async (who: Actor) => (await who.get('/api/auth/get-session')).status === 200

/** The id of the invitation as it was mailed, with its secret. */
async function mailedId(): Promise<string> {
  const link = linkIn((await t.mails()).at(-1) ?? '')
  return new URL(link, t.url).searchParams.get('id') ?? ''
}

test('the mail of an invitation has a secret, which no answer shows', async () => {
  const [ada, bea] = [await createPerson(t), await createPerson(t)]
  await createOrganization(t, [[ada, 'owner']])
  const invited = await invite(ada, bea.email)
  const [id, secret = ''] = (await mailedId()).split('.')
  assert.equal(id, invited.body.id)
  assert.match(secret, /^[\w-]{43}$/)
  const answers = [
    invited,
    await ada.get(`${ORG}/list-invitations`),
    await ada.get(`${ORG}/get-full-organization`),
    await bea.get(`${ORG}/list-user-invitations`),
    await bea.get(`${ORG}/get-invitation?id=${id}.${secret}`),
  ]
  for (const { status, text } of answers) {
    assert.equal(status, 200)
    assert.ok(!text.includes(secret) && !/secret/i.test(text), text)
  }
  const stored = await db
    .selectFrom('invitation')
    .selectAll()
    .where('id', '=', id ?? '')
    .execute()
  assert.ok(!JSON.stringify(stored).includes(secret))
})

test('with the secret an unproven recipient sees the invitation, and without it or with another one not', async () => {
  const [ada, eve] = [await createPerson(t), await createPerson(t, { verified: false })]
  await createOrganization(t, [[ada, 'owner']])
  await invite(ada, eve.email)
  const named = await mailedId()
  const [id, secret = ''] = named.split('.')
  const get = async (who: Actor, given: string) => said(await who.get(`${ORG}/get-invitation?id=${given}`))
  const wrong = `${id}.${secret.replace(/./, (first) => (first === 'A' ? 'B' : 'A'))}`
  assert.equal(await get(eve, named), 200)
  for (const given of [id ?? '', wrong, `${id}.`])
    assert.equal(await get(eve, given), 'EMAIL_VERIFICATION_REQUIRED_FOR_INVITATION')
  assert.equal(await get(eve, `${named}.x`), 'INVITATION_NOT_FOUND')
  for (const given of [id ?? '', wrong])
    assert.equal(
      await accept(eve, given),
      'EMAIL_VERIFICATION_REQUIRED_BEFORE_ACCEPTING_OR_REJECTING_INVITATION',
    )
  const forwarded = await createPerson(t)
  assert.deepEqual(
    [await get(forwarded, named), await accept(forwarded, named)],
    ['INVITATION_NOT_FOUND', 'INVITATION_NOT_FOUND'],
  )
  assert.equal(await isProven(eve.id), false)
})

/** A user with a password, a second session, and what each of the two sessions has added. */
async function twoSessions() {
  const user = await t.signUp('Bea')
  const second = await t.anon.post('/api/auth/sign-in/email', { email: user.email, password: PASSWORD })
  const other = actor(t.url, { authorization: `Bearer ${second.body.token}` })
  const sessionOf = async (who: Actor) => (await who.get('/api/auth/get-session')).body.session.id as string
  const ids = { own: await sessionOf(user), other: await sessionOf(other) }
  for (const [who, addedBy] of [
    [user, ids.own],
    [other, ids.other],
  ] as const) {
    const times = { createdAt: new Date(), updatedAt: new Date() }
    const account = {
      id: randomUUID(),
      userId: user.id,
      providerId: 'github',
      accountId: addedBy,
      addedBy,
      ...times,
    }
    await db.insertInto('account').values(account).execute()
    assert.equal((await ceremonies.register(who, createAuthenticator())).status, 200)
  }
  return { user, other, ids }
}

test('accepting with the secret proves the address, and only what the accepting session has added stays', async () => {
  const ada = await createPerson(t)
  await createOrganization(t, [[ada, 'owner']])
  const { user, other, ids } = await twoSessions()
  const mine = await createOrganization(t, [[{ ...user, sessionId: ids.own } as Person, 'owner']])
  const rows = {
    expiresAt: new Date(Date.now() + 86_400_000),
    createdAt: new Date(),
    inviterId: user.id,
    role: 'member',
  }
  const sent = { own: randomUUID(), other: randomUUID() }
  for (const by of ['own', 'other'] as const)
    await db
      .insertInto('invitation')
      .values({
        ...rows,
        id: sent[by],
        organizationId: mine.id,
        email: `${by}-${user.email}`,
        addedBy: ids[by],
      })
      .execute()
  await t.anon.post('/api/auth/forget-password', { email: user.email })
  await t.mails()
  await invite(ada, user.email, 'admin')

  assert.equal(await accept(user, await mailedId()), 200)
  assert.equal(await isProven(user.id), true)
  assert.deepEqual([await isAlive(user), await isAlive(other)], [true, false])
  const accounts = await db
    .selectFrom('account')
    .select(['providerId', 'addedBy'])
    .where('userId', '=', user.id)
    .orderBy('providerId')
    .execute()
  assert.deepEqual(accounts, [
    { providerId: 'credential', addedBy: null },
    { providerId: 'github', addedBy: ids.own },
  ])
  const passkeys = await db.selectFrom('passkey').select('addedBy').where('userId', '=', user.id).execute()
  assert.deepEqual(passkeys, [{ addedBy: ids.own }])
  assert.deepEqual([await statusOf(sent.own), await statusOf(sent.other)], ['pending', 'canceled'])
  const open = await db.selectFrom('verification').select('purpose').where('userId', '=', user.id).execute()
  assert.deepEqual(open, [], 'the reset link that was open is worth nothing')
  const again = await t.anon.post('/api/auth/sign-in/email', { email: user.email, password: PASSWORD })
  assert.equal(again.status, 200, 'the password stays')
})

test('a proven recipient keeps everything', async () => {
  const ada = await createPerson(t)
  await createOrganization(t, [[ada, 'owner']])
  const { user, other } = await twoSessions()
  await db
    .updateTable('user')
    .set({ emailVerified: true, emailProvenAt: new Date() })
    .where('id', '=', user.id)
    .execute()
  await t.service.kernel.coherence.settle()
  await invite(ada, user.email)
  assert.equal(await accept(user, await mailedId()), 200)
  assert.deepEqual([await isAlive(user), await isAlive(other)], [true, true])
})

test('a scanner that opens the link proves nothing, and the button on the page does', async () => {
  const ada = await createPerson(t)
  await createOrganization(t, [[ada, 'owner']])
  const bea = await t.signUp('Bea')
  await t.mails()
  await invite(ada, bea.email)
  const link = linkIn((await t.mails()).at(-1) ?? '')
  for (const who of [t.anon, bea]) await who.get(link, { headers: BROWSER })
  const id = new URL(link, t.url).searchParams.get('id')
  assert.equal((await t.anon.post('/api/auth/confirm/invitation', { id })).status, 401)
  assert.equal(await isProven(bea.id), false)
  assert.equal((await confirm(bea, link)).status, 200)
  assert.equal(await isProven(bea.id), true)
})

test('the secret of an earlier mail proves nothing after the invitation was sent again', async () => {
  const [ada, eve] = [await createPerson(t), await createPerson(t, { verified: false })]
  await createOrganization(t, [[ada, 'owner']])
  await invite(ada, eve.email)
  const first = await mailedId()
  await ada.post(`${ORG}/invite-member`, { email: eve.email, role: 'member', resend: true })
  const second = await mailedId()
  assert.notEqual(first, second)
  assert.equal(
    await accept(eve, first),
    'EMAIL_VERIFICATION_REQUIRED_BEFORE_ACCEPTING_OR_REJECTING_INVITATION',
  )
  assert.equal(await accept(eve, second), 200)
})
