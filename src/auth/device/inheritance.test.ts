import assert from 'node:assert/strict'
import { test } from 'node:test'
import { banByOperator, setRoleByOperator } from '#auth/admin/operator.ts'
import { setPasswordByOperator } from '#auth/password/password.ts'
import { tokenHash } from '#identity/tokens.ts'
import { approve, askForCodes, DEVICE_CLIENTS, deny, deviceOf, poll } from '#test/devices.ts'
import { type Actor, actor, linkIn, PASSWORD, testClock, testService, type User } from '#test/harness.ts'
import { ceremoniesOf } from '#test/passkeys.ts'
import { impersonated, sessionIdOf } from '#test/permissions/impersonated.ts'
import { codeOf, enrolTotp } from '#test/second-factor.ts'

const t = await testService({
  clock: testClock({ isStopped: true }),
  config: {
    auth: {
      device: { clients: DEVICE_CLIENTS },
      two_factor: { required_for: ['keeper'] },
      admin: { roles: { keeper: {} } },
    },
    session: { max_age: 20 * 86_400_000 },
  },
})
const { kernel } = t.service
const { db } = kernel
const passkeys = ceremoniesOf(t)
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000]

const sessionOf = (token: string) =>
  db.selectFrom('session').selectAll().where('tokenHash', '=', tokenHash(token)).executeTakeFirstOrThrow()
const isAlive = async (who: Actor) => (await who.get('/api/auth/get-session')).status === 200
const refusal = async (who: Actor) => {
  const answers = [await approve(who, await askForCodes(t)), await deny(who, await askForCodes(t))]
  return answers.map(({ status, body }) => `${status} ${body.code ?? ''}`)
}
async function signInAs({ email }: User, more = {}): Promise<Actor & { readonly token: string }> {
  const { body } = await t.anon.post('/api/auth/sign-in/email', { email, password: PASSWORD, ...more })
  return { ...actor(t.url, { authorization: `Bearer ${body.token}` }), token: body.token }
}

/** Approves, lets something happen, and answers what the device gets then. */
async function afterApproval(user: User, happen: (approving: Actor) => Promise<unknown>) {
  const approving = await signInAs(user)
  const asked = await askForCodes(t)
  assert.equal((await approve(approving, asked)).status, 200)
  await happen(approving)
  const { status, body } = await poll(t, asked)
  return status === 200 ? 'a session' : body.error
}

test('the session of a device is as old as the one that has approved it, and has shown the same', async () => {
  const ada = await t.signUp('Ada')
  t.advance(3 * HOUR)
  const device = await deviceOf(t, ada)
  const [own, parent] = [await sessionOf(device.token), await sessionOf(ada.token)]
  const inherited = ({
    createdAt,
    remembered,
    shown,
    userHad,
    authTime,
    passwordShownAt,
    factorShownAt,
  }: typeof own) => ({
    ...{ createdAt, remembered, shown, userHad, authTime, passwordShownAt, factorShownAt },
  })
  assert.deepEqual(inherited(own), inherited(parent))
  assert.deepEqual([own.parentSessionId, own.impersonatedBy], [null, null])
  assert.deepEqual(own.expiresAt, new Date(kernel.now().getTime() + 7 * DAY))
  const stale = await device.post('/api/auth/delete-user', {})
  assert.equal(stale.body.message, 'Verification email sent', 'no proof of the last ten minutes')
})

test('what the session shows after it has approved is not inherited', async () => {
  const ada = await t.signUp('Ada')
  t.advance(HOUR)
  const before = await sessionOf(ada.token)
  const asked = await askForCodes(t)
  await approve(ada, asked)
  assert.equal((await ada.post('/api/auth/reauthenticate', { password: PASSWORD })).status, 200)
  const { body } = await poll(t, asked)
  assert.deepEqual((await sessionOf(body.access_token)).authTime, before.authTime)
})

test('a session that is not remembered gives no longer one, and none outlives session.max_age', async () => {
  const ada = await t.signUp('Ada')
  const short = await signInAs(ada, { rememberMe: false })
  t.advance(HOUR)
  const { expiresAt } = await sessionOf(short.token)
  const device = await deviceOf(t, short)
  assert.deepEqual((await sessionOf(device.token)).expiresAt, expiresAt)
  t.advance(23 * HOUR + 1)
  assert.equal(await isAlive(device), false)

  const long = await signInAs(ada)
  for (let day = 0; day < 15; day += 5) {
    t.advance(5 * DAY)
    assert.ok(await isAlive(long))
  }
  const { body } = await long.post('/api/auth/reauthenticate', { password: PASSWORD })
  const renewed = { ...actor(t.url, { authorization: `Bearer ${body.token}` }) }
  const late = await deviceOf(t, renewed)
  t.advance(4 * DAY)
  assert.ok(await isAlive(late))
  t.advance(DAY + 1)
  assert.equal(await isAlive(late), false, '20 days after the sign-in')
})

test('a session of a device does not end with the one that has approved it', async () => {
  const ada = await t.signUp('Ada')
  const approving = await signInAs(ada)
  const device = await deviceOf(t, approving)
  assert.equal((await approving.post('/api/auth/sign-out')).status, 200)
  assert.ok(await isAlive(device))
  t.advance(2 * DAY)
  assert.ok(await isAlive(device))
})

test('an approval that was not fetched yet ends with its session, and with all that ends the user’s tickets', async () => {
  const ada = await t.signUp('Ada')
  assert.equal(await afterApproval(ada, async () => {}), 'a session')
  const endings: Readonly<Record<string, (approving: Actor) => Promise<unknown>>> = {
    'sign-out': (approving) => approving.post('/api/auth/sign-out'),
    'revoke-other-sessions by another': () => ada.post('/api/auth/revoke-other-sessions'),
    'change-password': () =>
      ada.post('/api/auth/change-password', { currentPassword: PASSWORD, newPassword: PASSWORD }),
    ban: async () => {
      await banByOperator(kernel, ada.id, {
        reason: null,
        expires: new Date(kernel.now().getTime() + MINUTE),
      })
    },
  }
  for (const [name, end] of Object.entries(endings))
    assert.equal(await afterApproval(ada, end), 'invalid_grant', name)
})

const ALL_SESSIONS_END: Readonly<Record<string, (owner: User) => Promise<unknown>>> = {
  'revoke-sessions': (owner) => owner.post('/api/auth/revoke-sessions'),
  'revoke-other-sessions': (owner) => owner.post('/api/auth/revoke-other-sessions'),
  'change-password that ends the others': (owner) =>
    owner.post('/api/auth/change-password', {
      ...{ currentPassword: PASSWORD, newPassword: `${PASSWORD}!`, revokeOtherSessions: true },
    }),
  'reset-password': async (owner) => {
    await t.anon.post('/api/auth/forget-password', { email: owner.email })
    const mail = (await t.mails()).find((one) => one.includes(`To: ${owner.email}`)) ?? ''
    const token = linkIn(mail).split('/').at(-1)
    const { status } = await t.anon.post('/api/auth/reset-password', { token, newPassword: `${PASSWORD}!` })
    assert.equal(status, 200)
  },
  'set-password by an operator': ({ id }) => setPasswordByOperator(kernel, id, `${PASSWORD}!`),
  ban: ({ id }) => banByOperator(kernel, id, { reason: null, expires: null }),
  deletion: (owner) => owner.post('/api/auth/delete-user', { password: PASSWORD }),
}

for (const [name, end] of Object.entries(ALL_SESSIONS_END))
  test(`${name} ends the sessions of devices too, and what they have approved, whoever stole the session that approved them`, async () => {
    const owner = await t.signUp('Ada')
    const stolen = await signInAs(owner)
    const device = await deviceOf(t, stolen)
    const second = await deviceOf(t, device)
    const [byStolen, byDevice] = [await askForCodes(t), await askForCodes(t)]
    for (const [who, asked] of [
      [stolen, byStolen],
      [device, byDevice],
    ] as const)
      assert.equal((await approve(who, asked)).status, 200)
    await end(owner)
    for (const who of [stolen, device, second]) assert.equal(await isAlive(who), false)
    for (const asked of [byStolen, byDevice]) {
      const { status, body } = await poll(t, asked)
      assert.deepEqual([status, body.error], [400, 'invalid_grant'])
    }
  })

test('a factor that was confirmed after the approval is not passed by', async () => {
  const ada = await t.signUp('Ada')
  const asked = await askForCodes(t)
  await approve(ada, asked)
  await enrolTotp(t, ada)
  const { status, body } = await poll(t, asked)
  assert.deepEqual([status, body.error], [400, 'access_denied'])
})

test('an approval ends with the factor or the last passkey that its session has shown', async () => {
  const ada = await enrolTotp(t, await t.signUp('Ada'))
  const byTotp = await askForCodes(t)
  assert.equal((await approve(ada, byTotp)).status, 200)
  const disabled = await ada.post('/api/auth/two-factor/disable', { password: PASSWORD })
  assert.equal(disabled.status, 200, disabled.text)

  const { authenticator, passkey } = await passkeys.newUser('Bob')
  const { body: signedIn } = await passkeys.signIn(authenticator)
  const bob = actor(t.url, { authorization: `Bearer ${signedIn.token}` })
  const byPasskey = await askForCodes(t)
  assert.equal((await approve(bob, byPasskey)).status, 200)
  const removed = await bob.post('/api/auth/passkey/delete-passkey', { id: passkey.id })
  assert.equal(removed.status, 200, removed.text)

  for (const asked of [byTotp, byPasskey]) {
    const { status, body } = await poll(t, asked)
    assert.deepEqual([status, body.error], [400, 'invalid_grant'])
  }
})

test('approving needs a session, a recent proof and the factor; refusing needs a session', async () => {
  assert.deepEqual(await refusal(t.anon), ['401 UNAUTHORIZED', '401 UNAUTHORIZED'])
  const ada = await t.signUp('Ada')
  t.advance(DAY + 1)
  assert.deepEqual(await refusal(ada), ['403 SESSION_NOT_FRESH', '200 '])
  const asked = await askForCodes(t)
  const stale = await approve(ada, asked)
  assert.deepEqual([stale.body.error, stale.body.details.accepts], ['session_not_fresh', ['password']])
  const { body } = await ada.post('/api/auth/reauthenticate', { password: PASSWORD })
  const renewed = actor(t.url, { authorization: `Bearer ${body.token}` })
  assert.equal((await approve(renewed, asked)).status, 200, 'the refusal has used nothing up')
})

test('a session that lacks a factor in force approves nothing, and one that has shown it does', async () => {
  const ada = await t.signUp('Ada')
  const enrolled = await enrolTotp(t, ada)
  const id = await sessionIdOf(enrolled)
  await db
    .updateTable('session')
    .set({ shown: ['password'] })
    .where('id', '=', id)
    .execute()
  await kernel.coherence.settle()
  assert.deepEqual(await refusal(enrolled), ['403 SESSION_NOT_FRESH', '200 '])
  t.advance(MINUTE)
  const { body } = await enrolled.post('/api/auth/reauthenticate', { code: codeOf(t, enrolled.secret) })
  assert.deepEqual(await refusal(actor(t.url, { authorization: `Bearer ${body.token}` })), ['200 ', '200 '])
})

test('impersonated sessions, and those that lack a factor that their role requires, answer no device', async () => {
  const [root, ada] = [await t.signUp('Root'), await t.signUp('Ada')]
  await setRoleByOperator(kernel, root.id, 'admin')
  const acting = await impersonated(t, root, ada, { parentId: await sessionIdOf(root) })
  assert.deepEqual(await refusal(acting), ['403 NOT_WHILE_IMPERSONATING', '403 NOT_WHILE_IMPERSONATING'])
  const path = `/api/auth/device?user_code=${(await askForCodes(t)).userCode}`
  assert.equal((await acting.get(path)).body.code, 'NOT_WHILE_IMPERSONATING')
  await setRoleByOperator(kernel, ada.id, 'keeper')
  const restricted = await signInAs(ada)
  assert.deepEqual(await refusal(restricted), ['403 TWO_FACTOR_REQUIRED', '403 TWO_FACTOR_REQUIRED'])
  assert.equal((await restricted.get(path)).body.client_name, undefined, 'it sees what a stranger sees')
})
