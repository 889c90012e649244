import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tokenHash } from '#identity/tokens.ts'
import { randomToken, uuidv7 } from '#kernel/random.ts'
import { actor, type User } from '#test/harness.ts'
import { insertFactor } from '#test/second-factor.ts'
import { createTenants } from '#test/tenants.ts'
import { impersonated, sessionIdOf } from './impersonated.ts'

// The role `auditor` requires a second factor. The clients have row-level security.
const { t, changeControlDatabase } = await createTenants()
const { db, now, random } = t.service.kernel
const [MINUTE, HOUR] = [60_000, 3_600_000]

/** Open to who has no session at all. */
const OPEN_TO_STRANGERS = [
  'GET /callback/provider',
  'GET /confirm/change-email',
  'GET /confirm/delete-user',
  'GET /confirm/device',
  'GET /confirm/invitation',
  'GET /confirm/magic-link',
  'GET /confirm/reset-password',
  'GET /confirm/verify-email',
  'GET /multi-session/list-device-sessions',
  'GET /device',
  'GET /magic-link/verify',
  'GET /passkey/generate-authenticate-options',
  'GET /verify-email',
  'POST /admin/create-first-admin',
  'POST /admin/exchange-handoff',
  'POST /confirm/change-email',
  'POST /confirm/delete-user',
  'POST /confirm/device',
  'POST /confirm/invitation',
  'POST /confirm/magic-link',
  'POST /confirm/reset-password',
  'POST /confirm/verify-email',
  'POST /email-otp/check-verification-otp',
  'POST /email-otp/request-password-reset',
  'POST /email-otp/reset-password',
  'POST /email-otp/send-verification-otp',
  'POST /email-otp/verify-email',
  'POST /forget-password',
  'POST /forget-password/email-otp',
  'POST /multi-session/revoke',
  'POST /multi-session/set-active',
  'POST /one-time-token/verify',
  'POST /passkey/generate-authenticate-options',
  'POST /request-password-reset',
  'POST /sign-in/anonymous',
  'POST /sign-in/email-otp',
  'POST /sign-in/magic-link',
  'POST /sign-in/social',
  'POST /sign-up/email',
  'POST /two-factor/send-otp',
  'POST /two-factor/verify-backup-code',
  'POST /two-factor/verify-otp',
  'POST /two-factor/verify-totp',
  'POST /verify-email',
]
/** Open to every session (auth.md 7). */
const OPEN = [
  'GET /get-session',
  'POST /admin/stop-impersonating',
  'POST /get-session',
  'POST /reauthenticate',
  'POST /sign-out',
]
/** Open shortly after a proof to users who have no factor. */
const ENROLMENT = [
  'GET /passkey/generate-register-options',
  'POST /passkey/verify-registration',
  'POST /set-password',
  'POST /two-factor/disable',
  'POST /two-factor/enable',
  'POST /two-factor/generate-backup-codes',
  'POST /two-factor/get-totp-uri',
]
/** Routes of the gateway that look at a session. */
const OF_SESSIONS = [
  'DELETE /gateway/delete',
  'GET /data',
  'GET /public/docs/subscribe',
  'GET /rpc/name',
  'POST /gateway/data',
  'POST /gateway/delete',
  'POST /gateway/fetch',
  'POST /gateway/import',
  'POST /gateway/insert',
  'POST /gateway/query',
  'POST /gateway/rpc',
  'POST /gateway/sql',
  'POST /gateway/transaction',
  'POST /gateway/update',
  'POST /pipelines',
  'POST /pipelines/simulate',
  'POST /public/docs/fetch',
  'POST /public/docs/subscribe',
  'POST /query/count',
  'POST /query/sql',
  'POST /realtime',
  'POST /realtime/tickets',
  'POST /rpc/name',
  'PUT /gateway/insert',
]

const PARAMETERS: Readonly<Record<string, string>> = { route_key: 'docs', op: 'fetch' }
const routesOf = (surface: string) =>
  t.service.book
    .entries()
    .filter((route) => route.surface === surface && route.access !== 'open')
    .map(({ method, path }) => ({
      method,
      path: path.replace(/\{(\w+)\}/g, (_found, name) => PARAMETERS[name] ?? name),
    }))

/** How a session began: with the password, this long ago, and with these methods of its user. */
type Begun = { readonly userHad: readonly string[]; readonly age?: number }

async function sessionOf({ id: userId }: User, { userHad, age = 0 }: Begun): Promise<string> {
  const token = randomToken(random)
  const [createdAt, shownAt] = [now(), new Date(now().getTime() - age)]
  const [updatedAt, expiresAt] = [createdAt, new Date(createdAt.getTime() + HOUR)]
  await db
    .insertInto('session')
    .values({
      ...{ id: uuidv7(createdAt, random), userId, tokenHash: tokenHash(token), remembered: false },
      ...{ shown: ['password'], userHad: [...userHad], authTime: shownAt, passwordShownAt: shownAt },
      ...{ createdAt, updatedAt, expiresAt },
    })
    .execute()
  return token
}

async function auditor(name: string): Promise<User> {
  const user = await t.signUp(name)
  await changeControlDatabase(`update service."user" set role = 'auditor' where id = $1`, [user.id])
  return user
}

/** Sends an empty request to each route, each in a session of its own. Returns the routes by what they answer. */
async function outcomesOf(begin: () => Promise<string>): Promise<Readonly<Record<string, string[]>>> {
  const outcomes: Record<string, string[]> = {}
  for (const { method, path } of routesOf('auth')) {
    const me = actor(t.url, { authorization: `Bearer ${await begin()}` })
    const { status, body } = await me.send(method, path, method === 'GET' ? {} : { body: {} })
    const isRefused = ['TWO_FACTOR_REQUIRED', 'SESSION_NOT_FRESH', 'NOT_WHILE_IMPERSONATING'].includes(
      body?.code,
    )
    const outcome = isRefused ? `${status} ${body.code}` : 'open'
    const known = outcomes[outcome] ?? []
    outcomes[outcome] = [...known, `${method} ${path.replace('/api/auth', '')}`]
    if (body?.code === 'SESSION_NOT_FRESH') assert.deepEqual(body.details, { accepts: ['password'] }, path)
  }
  return outcomes
}

const ALWAYS = [...OPEN_TO_STRANGERS, ...OPEN].toSorted()
const PASSWORD = { userHad: ['password'] }

test('a session that lacks a required factor opens the named routes only, for users with any factor, now or when it began', async () => {
  const [byApp, byMail, byPasskey] = [await auditor('App'), await auditor('Mail'), await auditor('Passkey')]
  await insertFactor(t, byApp)
  await insertFactor(t, byMail, 'otp')
  const passkey = {
    ...{ id: byPasskey.id, userId: byPasskey.id, name: null, credentialId: byPasskey.id, publicKey: 'key' },
    ...{ counter: '0', deviceType: 'singleDevice', backedUp: false, transports: '', aaguid: byPasskey.id },
  }
  await db
    .insertInto('passkey')
    .values({ ...passkey, createdAt: now() })
    .execute()
  const former = await auditor('Former')
  for (const [user, begun] of [
    [byApp, { userHad: ['password', 'totp'] }],
    [byApp, PASSWORD],
    [byMail, { userHad: ['password', 'otp'] }],
    [byPasskey, { userHad: ['password', 'passkey'] }],
    [former, { userHad: ['password', 'totp'] }],
  ] as const) {
    const { open = [], '403 TWO_FACTOR_REQUIRED': closed = [] } = await outcomesOf(() =>
      sessionOf(user, begun),
    )
    assert.deepEqual(open.toSorted(), ALWAYS, user.email)
    assert.equal(closed.length, routesOf('auth').length - ALWAYS.length, user.email)
  }
})

test('such a session of a user without any factor opens enrolment too, within ten minutes of a proof', async () => {
  const ada = await auditor('Ada')
  const { open = [], '403 TWO_FACTOR_REQUIRED': closed = [] } = await outcomesOf(() =>
    sessionOf(ada, PASSWORD),
  )
  const opened = [...ALWAYS, ...ENROLMENT]
  assert.deepEqual(open.toSorted(), opened.toSorted())
  assert.equal(closed.length, routesOf('auth').length - opened.length)

  const late = await outcomesOf(() => sessionOf(ada, { ...PASSWORD, age: 10 * MINUTE + 1_000 }))
  assert.deepEqual(late.open?.toSorted(), ALWAYS)
  assert.deepEqual(late['403 SESSION_NOT_FRESH']?.toSorted(), ENROLMENT)
  assert.deepEqual(late['403 TWO_FACTOR_REQUIRED'], closed)
})

test('a session of an admin who lacks the factor and acts as a user without such a role is restricted too', async () => {
  const [root, user] = [await t.signUp('Root'), await t.signUp('User')]
  await changeControlDatabase(`update service."user" set role = 'admin,auditor' where id = $1`, [root.id])
  const parentId = await sessionIdOf(root)
  const { open = [] } = await outcomesOf(async () => (await impersonated(t, root, user, { parentId })).token)
  const expected = ['GET /callback/provider', ...OPEN.filter((route) => route !== 'POST /reauthenticate')]
  assert.deepEqual(open.toSorted(), expected.toSorted())
})

test('the gateway refuses such a session wherever it looks at one, whatever the key', async () => {
  const [ada, bob] = [await auditor('Ada'), await auditor('Bob')]
  await insertFactor(t, bob)
  const route = {
    route_key: 'docs',
    client_name: 'wide',
    allowed_ops: ['fetch', 'subscribe'],
    table_name: 'doc',
  }
  assert.equal((await t.admin.post('/admin/public-routes', route)).status, 201)
  const key = await t.key(['gateway.*', 'pipelines.run', 'gateway.bypass_row_level_security'], {
    client_name: 'wide',
  })
  for (const user of [ada, bob]) {
    const token = await sessionOf(user, PASSWORD)
    const me = actor(t.url, { ...key.headers, 'x-service-client': 'wide', authorization: `Bearer ${token}` })
    const closed: string[] = []
    for (const { method, path } of routesOf('gateway')) {
      const { status, body } = await me.send(method, path, method === 'GET' ? {} : { body: {} })
      if (body?.code !== 'two_factor_required') continue
      assert.equal(status, 403)
      closed.push(`${method} ${path}`)
    }
    assert.deepEqual(closed.toSorted(), OF_SESSIONS)
  }
})
