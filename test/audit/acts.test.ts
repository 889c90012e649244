import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Selectable } from 'kysely'
import { banByOperator, setRoleByOperator, unbanByOperator } from '#auth/admin/operator.ts'
import { setPasswordByOperator } from '#auth/password/password.ts'
import { resetFactors } from '#auth/two-factor/reset-factors.ts'
import { replayDeliveries } from '#gateway/webhooks/log/replay.ts'
import { importUsers } from '#identity/import/import.ts'
import { ACTIONS, type Action } from '#kernel/audit/actions.ts'
import { CLI } from '#kernel/audit/origin.ts'
import type { AuditEventTable } from '#kernel/db/tables.ts'
import { withOrigin } from '#kernel/kernel.ts'
import { linesOf } from '#kernel/lines.ts'
import { uuidv7 } from '#kernel/random.ts'
import { signInAnonymously } from '#test/anonymous.ts'
import { createAuthenticator } from '#test/authenticator.ts'
import { withClient } from '#test/database.ts'
import { approve, askForCodes, deny } from '#test/devices.ts'
import { type Answer, confirm, linkIn, PASSWORD, testService, type User } from '#test/harness.ts'
import { startOpenidProvider } from '#test/identity-provider/openid-provider.ts'
import { CLIENT, oidcSettings, TO_LOOPBACK } from '#test/identity-provider/visits.ts'
import { byBearer } from '#test/operators.ts'
import { ceremoniesOf } from '#test/passkeys.ts'
import { FILLED, fill } from '#test/scale/fill.ts'
import { largeTables, scannedTables, unindexedForeignKeys, watchStatements } from '#test/scale/plans.ts'
import { isTotal, readEverything } from '#test/scale/reads.ts'
import { codeOf, enrolTotp, secretIn, wrongCode } from '#test/second-factor.ts'
import { addEvents, addWebhook, startReceiver } from '#test/webhooks.ts'
import { backupCauses, backupPrograms } from './backup-causes.ts'
import { hookCauses } from './hook-causes.ts'
import { jwtKeyCauses } from './jwt-key-causes.ts'
import { organizationCauses } from './organization-causes.ts'
import { seeAs } from './see-as-cause.ts'

const HIDING = { hide_registered_emails: true, email_password: { require_email_verification: true } }
const idp = await startOpenidProvider()
idp.serve([])
const social = { providers: { acme: oidcSettings(idp) } }
const device = { clients: { tv: {} } }
const backups = { programs: await backupPrograms() }
const t = await testService({
  config: { outbound: TO_LOOPBACK, auth: { social, device, anonymous: { enabled: true } }, backups },
})
const undecided = await testService({
  controlUrl: t.controlUrl,
  builtIn: { url: t.clientUrl, callerRoles: { anonymousRole: 'anon', signedInRole: 'member' } },
})
const hiding = await testService({ controlUrl: t.controlUrl, config: { auth: HIDING } })
await fill(t.controlUrl, { users: 20_000, members: 20_000 })
const statements = watchStatements(t.controlUrl)
const { kernel } = t.service
const { db, now, random } = kernel
const passkeys = ceremoniesOf(t)
const commands = withOrigin(kernel, CLI)

/** Texts of people: no row may have one. Ids are not among them. */
const told = new Set<string>([PASSWORD])
const NEW_PASSWORD = 'another good password'
const NAME = 'Quidnunc'
for (const text of [NEW_PASSWORD, NAME, 'quidnunc']) told.add(text)

async function newcomer(): Promise<User> {
  const user = await t.signUp(NAME)
  told.add(user.email).add(user.token)
  return user
}

/** Actor and subject, as a row has to show them. */
type Seen = { readonly actorId: string; readonly targetId: string | null; readonly answer?: Answer }
const bySelf = ({ id }: User, answer: Answer): Seen => ({ actorId: id, targetId: id, answer })

const ok = (answer: Answer): Answer => {
  assert.ok(answer.status < 400, answer.text)
  const { token } = answer.body ?? {}
  if (typeof token === 'string') told.add(token)
  return answer
}

const signIn = (email: string, password: string) =>
  t.anon.post('/api/auth/sign-in/email', { email, password })

async function mailedTo({ email }: User): Promise<string> {
  const mail = (await t.mails()).findLast((one) => one.includes(`To: ${email}`))
  assert.ok(mail, `no mail to ${email}`)
  const link = linkIn(mail)
  told.add(new URL(link, t.url).searchParams.get('token') ?? '')
  return link
}

const byCommand = async (work: (id: string) => Promise<unknown>): Promise<Seen> => {
  const { id } = await newcomer()
  await work(id)
  return { actorId: 'cli', targetId: id }
}

async function impersonate() {
  const [admin, user] = [await newcomer(), await newcomer()]
  await setRoleByOperator(kernel, admin.id, 'admin')
  const answer = ok(await admin.post('/api/auth/admin/impersonate-user', { userId: user.id }))
  told.add(answer.body.session.token)
  return { admin, user, answer }
}

const ADMIN = { actorId: 'admin-key' }
const issueKey = async () => {
  const answer = ok(
    await t.admin.post('/admin/api-keys', { name: NAME, client_name: 'default', rights: ['notes.read'] }),
  )
  told.add(answer.body.data.api_key)
  return { answer, id: answer.body.data.record.id as string }
}

const createRoute = async (route_key: string) =>
  ok(
    await t.admin.post('/admin/public-routes', { route_key, client_name: 'default', allowed_ops: ['fetch'] }),
  )
const FOR_CLIENT = { headers: { 'x-service-client': 'default' } }
const makeWebhook = async () => {
  const url = `https://hooks.example.com/${NAME}`
  told.add(url)
  const answer = ok(await t.admin.post('/admin/webhooks', { route_key: 'gateway_insert', url }, FOR_CLIENT))
  told.add(answer.body.data.secret)
  return { answer, id: answer.body.data.id as string }
}

const asked = async () => {
  const codes = await askForCodes(t)
  told.add(codes.deviceCode).add(codes.userCode)
  return codes
}

/** A way to cause each act. */
const CAUSES: Readonly<Record<Action, () => Promise<Seen>>> = {
  'user.created': async () => {
    const email = `${NAME}-self@example.com`.toLowerCase()
    told.add(email)
    const body = { name: NAME, email, password: PASSWORD }
    const answer = ok(await t.anon.post('/api/auth/sign-up/email', body))
    const { id } = answer.body.user
    return { actorId: id, targetId: id, answer }
  },
  'user.imported': async () => {
    const line = JSON.stringify({ name: NAME, email: `${NAME}-imported@example.com`.toLowerCase() })
    async function* chunks() {
      yield Buffer.from(line)
    }
    await importUsers(commands, linesOf(chunks()), { dryRun: false, onBadLine: () => {} })
    return { actorId: 'cli', targetId: null }
  },
  'user.sign_up_hidden': async () => {
    const { email, id } = await newcomer()
    const body = { name: NAME, email, password: NEW_PASSWORD }
    const answer = ok(await hiding.anon.post('/api/auth/sign-up/email', body))
    return { actorId: 'anonymous', targetId: id, answer }
  },
  'user.signed_in': async () => {
    const ada = await newcomer()
    return bySelf(ada, ok(await signIn(ada.email, PASSWORD)))
  },
  'user.signed_out': async () => {
    const ada = await newcomer()
    return bySelf(ada, ok(await ada.post('/api/auth/sign-out')))
  },
  'user.reauthenticated': async () => {
    const ada = await newcomer()
    return bySelf(ada, ok(await ada.post('/api/auth/reauthenticate', { password: PASSWORD })))
  },
  'user.updated': async () => {
    const ada = await newcomer()
    return bySelf(ada, ok(await ada.post('/api/auth/update-user', { name: `${NAME} II` })))
  },
  'user.upgraded': async () => {
    const who = await signInAnonymously(t)
    return bySelf(who, ok(await passkeys.register(who, createAuthenticator())))
  },
  'user.deleted': async () => {
    const ada = await newcomer()
    return bySelf(ada, ok(await ada.post('/api/auth/delete-user', { password: PASSWORD })))
  },
  'user.banned': () => byCommand((id) => banByOperator(commands, id, { reason: NAME, expires: null })),
  'user.unbanned': () =>
    byCommand(async (id) => {
      await banByOperator(commands, id, { reason: NAME, expires: null })
      await unbanByOperator(commands, id)
    }),
  'user.role_changed': () => byCommand((id) => setRoleByOperator(commands, id, 'admin')),
  'user.impersonated': async () => {
    const { admin, user, answer } = await impersonate()
    return { actorId: admin.id, targetId: user.id, answer }
  },
  'user.impersonation_ended': async () => {
    const { admin, user, answer } = await impersonate()
    const headers = { authorization: `Bearer ${answer.body.session.token}` }
    const stopped = ok(await t.anon.post('/api/auth/admin/stop-impersonating', {}, { headers }))
    return { actorId: admin.id, targetId: user.id, answer: stopped }
  },
  'session.revoked': async () => {
    const ada = await newcomer()
    return bySelf(ada, ok(await ada.post('/api/auth/revoke-sessions')))
  },
  'email.change_requested': async () => {
    const ada = await newcomer()
    const newEmail = `new-${ada.email}`
    return bySelf(ada, ok(await ada.post('/api/auth/change-email', { newEmail })))
  },
  'email.changed': async () => {
    const ada = await newcomer()
    await t.mails()
    const to = { ...ada, email: `changed-${ada.email}` }
    ok(await ada.post('/api/auth/change-email', { newEmail: to.email, password: PASSWORD }))
    return bySelf(ada, ok(await confirm(ada, await mailedTo(to))))
  },
  'email.verified': async () => {
    const ada = await newcomer()
    ok(await t.anon.post('/api/auth/send-verification-email', { email: ada.email }))
    return bySelf(ada, ok(await confirm(t.anon, await mailedTo(ada), { password: PASSWORD })))
  },
  'password.set': async () => {
    const ada = await newcomer()
    await db.deleteFrom('account').where('userId', '=', ada.id).execute()
    return bySelf(ada, ok(await ada.post('/api/auth/set-password', { newPassword: NEW_PASSWORD })))
  },
  'password.changed': async () => {
    const ada = await newcomer()
    const body = { currentPassword: PASSWORD, newPassword: NEW_PASSWORD, revokeOtherSessions: true }
    return bySelf(ada, ok(await ada.post('/api/auth/change-password', body)))
  },
  'password.reset': async () => {
    const ada = await newcomer()
    await t.mails()
    ok(await t.anon.post('/api/auth/forget-password', { email: ada.email }))
    const link = await mailedTo(ada)
    const token = /reset-password\/([\w-]+)/.exec(link)?.[1] ?? ''
    told.add(token)
    return bySelf(
      ada,
      ok(await t.anon.post('/api/auth/reset-password', { token, newPassword: NEW_PASSWORD })),
    )
  },
  'password.assigned': () => byCommand((id) => setPasswordByOperator(commands, id, NEW_PASSWORD)),
  'account.linked': async () => {
    const ada = await newcomer()
    const token = await idp.idToken(CLIENT.id, { sub: NAME, email: ada.email, email_verified: true })
    told.add(token)
    return bySelf(ada, ok(await ada.post('/api/auth/link-social', { provider: 'acme', idToken: { token } })))
  },
  'account.unlinked': async () => {
    const ada = await newcomer()
    const account = { id: uuidv7(now(), random), userId: ada.id, providerId: 'github', accountId: NAME }
    await db
      .insertInto('account')
      .values({ ...account, createdAt: now(), updatedAt: now() })
      .execute()
    return bySelf(ada, ok(await ada.post('/api/auth/unlink-account', { providerId: 'github' })))
  },
  'device.approved': async () => {
    const ada = await newcomer()
    return bySelf(ada, ok(await approve(ada, await asked())))
  },
  'device.denied': async () => {
    const ada = await newcomer()
    return bySelf(ada, ok(await deny(ada, await asked())))
  },
  'passkey.added': async () => {
    const ada = await newcomer()
    return bySelf(ada, ok(await passkeys.register(ada, createAuthenticator(), { name: NAME })))
  },
  'passkey.renamed': async () => {
    const { user, passkey } = await passkeys.newUser(NAME)
    const body = { id: passkey.id, name: `${NAME} II` }
    return bySelf(user, ok(await user.post('/api/auth/passkey/update-passkey', body)))
  },
  'passkey.removed': async () => {
    const { user, passkey } = await passkeys.newUser(NAME)
    return bySelf(user, ok(await user.post('/api/auth/passkey/delete-passkey', { id: passkey.id })))
  },
  'second_factor.enabled': async () => {
    const ada = await newcomer()
    const begun = ok(await ada.post('/api/auth/two-factor/enable', { password: PASSWORD }))
    const code = codeOf(t, secretIn(begun.body.totpURI))
    return bySelf(ada, ok(await ada.post('/api/auth/two-factor/verify-totp', { code })))
  },
  'second_factor.disabled': async () => {
    const ada = await enrolTotp(t, await newcomer())
    return bySelf(ada, ok(await ada.post('/api/auth/two-factor/disable', { password: PASSWORD })))
  },
  'second_factor.failed': async () => {
    const ada = await enrolTotp(t, await newcomer())
    const code = wrongCode(t, ada.secret)
    return bySelf(ada, await ada.post('/api/auth/two-factor/verify-totp', { code }))
  },
  'backup_codes.replaced': async () => {
    const ada = await enrolTotp(t, await newcomer())
    return bySelf(
      ada,
      ok(await ada.post('/api/auth/two-factor/generate-backup-codes', { password: PASSWORD })),
    )
  },
  'factors.reset': async () => {
    const { user } = await passkeys.newUser(NAME)
    await resetFactors(commands, user.id)
    return { actorId: 'cli', targetId: user.id }
  },
  'sign_in.failed': async () => {
    const { email, id } = await newcomer()
    return { actorId: 'anonymous', targetId: id, answer: await signIn(email, 'wrong password') }
  },
  'password.failed': async () => {
    const ada = await newcomer()
    const body = { currentPassword: 'wrong password', newPassword: NEW_PASSWORD }
    return bySelf(ada, await ada.post('/api/auth/change-password', body))
  },
  'admin_act.failed': async () => {
    const [ada, bob] = [await newcomer(), await newcomer()]
    return bySelf(ada, await ada.post('/api/auth/admin/impersonate-user', { userId: bob.id }))
  },
  'impersonated_act.failed': async () => {
    const { admin, user, answer } = await impersonate()
    const headers = { authorization: `Bearer ${answer.body.session.token}` }
    const refused = await t.anon.post('/api/auth/revoke-sessions', {}, { headers })
    return { actorId: admin.id, targetId: user.id, answer: refused }
  },
  'operator_act.failed': async () => {
    const ada = await newcomer()
    return bySelf(ada, await byBearer(t, ada).post('/admin/public-routes', {}))
  },
  'api_key.created': async () => {
    const { answer, id } = await issueKey()
    return { ...ADMIN, targetId: id, answer }
  },
  'api_key.updated': async () => {
    const { id } = await issueKey()
    const answer = ok(await t.admin.send('PATCH', `/admin/api-keys/${id}`, { body: { is_active: false } }))
    return { ...ADMIN, targetId: id, answer }
  },
  'api_key.rotated': async () => {
    const { id } = await issueKey()
    const answer = ok(await t.admin.post(`/admin/api-keys/${id}/rotate`))
    told.add(answer.body.data.api_key)
    return { ...ADMIN, targetId: id, answer }
  },
  'api_key.revoked': async () => {
    const { id } = await issueKey()
    return { ...ADMIN, targetId: id, answer: ok(await t.admin.send('DELETE', `/admin/api-keys/${id}`)) }
  },
  'enforcement.changed': async () => {
    const body = { enforce_api_keys: true }
    const answer = ok(await t.admin.send('PUT', '/admin/api-key-clients/default', { body }))
    return { ...ADMIN, targetId: 'default', answer }
  },
  ...backupCauses(() => t),
  ...jwtKeyCauses(() => t),
  ...(await hookCauses(t, newcomer)),
  'client.registered': async () => {
    const { answer, id } = await registerClient('first')
    return { ...ADMIN, targetId: id, answer }
  },
  'client.updated': async () => {
    const { id } = await registerClient('second')
    const body = { description: NAME }
    const answer = ok(await t.admin.send('PATCH', '/admin/clients/second', { body }))
    return { ...ADMIN, targetId: id, answer }
  },
  'client.protected': async () => {
    const body = { enabled: true }
    const answer = ok(
      await undecided.admin.send('PUT', '/admin/clients/default/row-level-security', { body }),
    )
    return { ...ADMIN, targetId: 'default', answer }
  },
  'client.removed': async () => {
    await registerClient('third')
    return { ...ADMIN, targetId: null, answer: ok(await t.admin.send('DELETE', '/admin/clients/third')) }
  },
  'public_route.created': async () => {
    const answer = await createRoute('first-route')
    return { ...ADMIN, targetId: answer.body.data.id, answer }
  },
  'public_route.updated': async () => {
    const { body } = await createRoute('second-route')
    const change = { body: { is_active: false } }
    const answer = ok(await t.admin.send('PATCH', '/admin/public-routes/second-route', change))
    return { ...ADMIN, targetId: body.data.id, answer }
  },
  'public_route.removed': async () => {
    const { body } = await createRoute('third-route')
    const answer = ok(await t.admin.send('DELETE', '/admin/public-routes/third-route'))
    return { ...ADMIN, targetId: body.data.id, answer }
  },
  'webhook.created': async () => {
    const { answer, id } = await makeWebhook()
    return { ...ADMIN, targetId: id, answer }
  },
  'webhook.updated': async () => {
    const { id } = await makeWebhook()
    const body = { headers: { authorization: `Bearer ${PASSWORD}` } }
    return {
      ...ADMIN,
      targetId: id,
      answer: ok(await t.admin.send('PATCH', `/admin/webhooks/${id}`, { ...FOR_CLIENT, body })),
    }
  },
  'webhook.removed': async () => {
    const { id } = await makeWebhook()
    return {
      ...ADMIN,
      targetId: id,
      answer: ok(await t.admin.send('DELETE', `/admin/webhooks/${id}`, FOR_CLIENT)),
    }
  },
  'webhook.secret_rotated': async () => {
    const { id } = await makeWebhook()
    const answer = ok(await t.admin.post(`/admin/webhooks/${id}/rotate-secret`, undefined, FOR_CLIENT))
    told.add(answer.body.data.secret)
    return { ...ADMIN, targetId: id, answer }
  },
  ...organizationCauses(t),
  'webhook.tested': async () => {
    const { url } = await startReceiver()
    const { id } = await addWebhook(kernel, { url })
    const answer = ok(await t.admin.post(`/admin/webhooks/${id}/test`, undefined, FOR_CLIENT))
    return { ...ADMIN, targetId: id, answer }
  },
  'webhook.delivery_retried': async () => {
    const { url } = await startReceiver()
    const { id } = await addWebhook(kernel, { url })
    await addEvents(kernel, id)
    const { body } = ok(await t.admin.get(`/admin/webhooks/${id}/deliveries`, FOR_CLIENT))
    const path = `/admin/webhooks/${id}/deliveries/${body.data.deliveries[0].id}/retry`
    return { ...ADMIN, targetId: id, answer: ok(await t.admin.post(path, undefined, FOR_CLIENT)) }
  },
  'webhook.deliveries_replayed': async () => {
    const { url } = await startReceiver()
    const { id } = await addWebhook(kernel, { url })
    await addEvents(kernel, id)
    await t.service.deliveries.drain()
    await replayDeliveries(commands, { webhookId: id, status: 'succeeded', since: new Date(0) }, () => {})
    return { actorId: 'cli', targetId: id }
  },
  'webhook.deactivated': async () => {
    const { url } = await startReceiver((response) => response.writeHead(410).end())
    const { id } = await addWebhook(kernel, { url })
    await addEvents(kernel, id)
    await t.service.deliveries.drain()
    return { actorId: 'system', targetId: id }
  },
  'rows.seen_as': async () => seeAs(t, await newcomer()),
  'schema.changed': async () => {
    const key = await t.key(['management.tables.write'])
    told.add(key.apiKey)
    const body = { table_name: 'audited', columns: [{ name: 'id', data_type: 'integer', primary_key: true }] }
    const answer = ok(await key.post('/management/tables', body))
    return { actorId: `key:${key.keyId}`, targetId: 'public.audited', answer }
  },
}

async function registerClient(client_name: string) {
  const answer = ok(await t.admin.post('/admin/clients', { client_name, url: t.clientUrl }))
  const { id } = await db
    .selectFrom('databaseClient')
    .select('id')
    .where('clientName', '=', client_name)
    .executeTakeFirstOrThrow()
  told.add(new URL(t.clientUrl).password)
  return { answer, id }
}

const rowsOf = (action: Action): Promise<Selectable<AuditEventTable>[]> =>
  db.selectFrom('auditEvent').selectAll().where('action', '=', action).orderBy('id').execute()

for (const action of Object.keys(ACTIONS) as Action[]) {
  test(`${action} leaves one row: the actor, the target, the address and the request`, async () => {
    statements.on = true
    const { answer, ...seen } = await CAUSES[action]()
    statements.on = false
    const row = (await rowsOf(action)).findLast(({ targetId }) => targetId === seen.targetId)
    const requestId = answer?.headers.get('x-request-id') ?? null
    const from = answer === undefined ? [null, null] : ['127.0.0.1', 'node']
    assert.deepEqual(
      [row?.actorId, row?.targetType, row?.ipAddress, row?.userAgent, row?.requestId, row?.outcome],
      [seen.actorId, ACTIONS[action], ...from, requestId, action.endsWith('.failed') ? 'failure' : 'success'],
    )
    if (requestId !== null) {
      const ofRequest = (await rowsOf(action)).filter((one) => one.requestId === requestId)
      assert.equal(ofRequest.length, 1)
    }
  })
}

test('failures are counted: one row a minute for each account and reason, and one for all unknown accounts', async () => {
  const [ada, bob] = [await newcomer(), await newcomer()]
  const failures = async () => {
    const rows = await rowsOf('sign_in.failed')
    return rows
      .filter(({ targetId }) => targetId === ada.id || targetId === bob.id || targetId === null)
      .map(({ targetId, count }) => [targetId, count])
  }
  const guess = async () => {
    for (const { email } of [ada, ada, ada, bob]) await signIn(email, 'wrong password')
    for (const name of ['one', 'two']) await signIn(`${name}@nowhere.example`, 'wrong password')
  }
  t.advance(60_000 - (now().getTime() % 60_000))
  await guess()
  const first = [[ada.id, 3], [bob.id, 1], [null, 2]] // biome-ignore format: a table
  assert.deepEqual(new Set((await failures()).map(String)), new Set(first.map(String)))
  t.advance(60_000)
  await guess()
  assert.equal((await failures()).length, 6)
  await banByOperator(commands, bob.id, { reason: null, expires: null })
  assert.equal((await signIn(bob.email, PASSWORD)).status, 403)
  const [banned] = (await rowsOf('sign_in.failed')).filter(
    ({ targetId, details }) => targetId === bob.id && JSON.stringify(details).includes('BANNED_USER'),
  )
  assert.equal(banned?.count, 1)
})

test('refused acts of an admin are counted, also those that only the verb can judge', async () => {
  const [root, ada, bob] = [await newcomer(), await newcomer(), await newcomer()]
  for (const { id } of [root, bob]) await setRoleByOperator(commands, id, 'admin')
  t.advance(60_000 - (now().getTime() % 60_000))
  const begin = (who: User) => who.post('/api/auth/admin/impersonate-user', { userId: root.id })
  for (const who of [ada, ada, bob]) assert.equal((await begin(who)).status, 403)
  const counted = (await rowsOf('admin_act.failed'))
    .filter(({ targetId }) => targetId === ada.id || targetId === bob.id)
    .map(({ actorId, details, count }) => [actorId, details, count])
  const expected = [
    [ada.id, { reason: 'YOU_ARE_NOT_ALLOWED_TO_IMPERSONATE_USERS' }, 2],
    [bob.id, { reason: 'YOU_CANNOT_IMPERSONATE_ADMINS' }, 1],
  ]
  assert.deepEqual(
    new Set(counted.map((row) => JSON.stringify(row))),
    new Set(expected.map((row) => JSON.stringify(row))),
  )
})

test('an act under impersonation has the admin as the actor and the user as onBehalfOf', async () => {
  const [admin, ada] = [await newcomer(), await newcomer()]
  await setRoleByOperator(commands, admin.id, 'admin')
  const { body } = ok(await admin.post('/api/auth/admin/impersonate-user', { userId: ada.id }))
  const headers = { authorization: `Bearer ${body.session.token}` }
  told.add(body.session.token)
  const answer = ok(await t.anon.post('/api/auth/update-user', { name: `${NAME} III` }, { headers }))
  const row = (await rowsOf('user.updated')).at(-1)
  assert.deepEqual(
    [row?.actorId, row?.onBehalfOf, row?.targetId, row?.requestId],
    [admin.id, ada.id, ada.id, answer.headers.get('x-request-id')],
  )
})

test('no read writes a row', async () => {
  const ada = await newcomer()
  const key = await t.key(['audited.read'])
  const count = async () => (await db.selectFrom('auditEvent').select('id').execute()).length
  const before = await count()
  ok(await ada.get('/api/auth/get-session'))
  ok(await ada.get('/api/auth/list-sessions'))
  ok(await ada.get('/api/auth/list-accounts'))
  ok(await key.post('/gateway/fetch', { table_name: 'audited' }))
  ok(await t.admin.get('/admin/api-keys'))
  assert.equal((await ada.get('/api/auth/nowhere')).status, 404)
  assert.equal(await count(), before)
})

test('no statement of an act or a listing reads a filled table from end to end', async () => {
  statements.on = true
  await readEverything(t)
  statements.on = false
  await withClient(t.controlUrl, async (client) => {
    const large = await largeTables(client, 10_000)
    assert.ok(large.size >= 12 && statements.seen.size > 120, `${large.size} ${statements.seen.size}`)
    const scans: string[] = []
    for (const statement of statements.seen.values()) {
      const found = await scannedTables(client, large, statement)
      if (found.length > 0 && !isTotal(statement)) scans.push(`${found}: ${statement.text}`)
    }
    assert.deepEqual(scans, [])
    assert.deepEqual(await unindexedForeignKeys(client), [])
  })
})

test('no row has an address, a name, a password, a token or a key', async () => {
  const users = await db
    .selectFrom('user')
    .select(['email', 'name'])
    .where('email', 'not like', `%@${FILLED}`)
    .execute()
  for (const { email, name } of users) told.add(email).add(name)
  const rows = JSON.stringify(
    await db.selectFrom('auditEvent').selectAll().where('ipAddress', 'is not', null).execute(),
  )
  assert.ok(rows.length > 10_000)
  for (const text of told) assert.ok(text === '' || !rows.includes(text), text)
})
