import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { setRoleByOperator } from '#auth/admin/operator.ts'
import { importUsers } from '#identity/import/import.ts'
import { linesOf } from '#kernel/lines.ts'
import { signInAnonymously } from '#test/anonymous.ts'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { linkIn, PASSWORD, testService } from '#test/harness.ts'
import { waysIn } from '#test/hook-ways.ts'
import { OUTBOUND, REFUSE, startHookReceiver } from '#test/hooks.ts'
import { startOpenidProvider } from '#test/identity-provider/openid-provider.ts'
import { oidcSettings, register } from '#test/identity-provider/visits.ts'

const hook = await startHookReceiver()

test('what others do to a user, and what a session does, calls no hook', async () => {
  const t = await testService({
    config: {
      outbound: OUTBOUND,
      auth: { ...EVERY_FEATURE, jwt: { header: true }, hooks: { mine: hook.settings() } },
    },
  })
  const { kernel } = t.service
  const [root, ada, anna] = [await t.signUp('Root'), await t.signUp('Ada'), await signInAnonymously(t)]
  await setRoleByOperator(kernel, root.id, 'admin')
  await root.get('/api/auth/get-session')
  await ada.get('/api/auth/get-session')
  hook.taken()
  hook.reply(REFUSE)
  const done = async (path: string, body: object = {}, by = root) => {
    const answer = await by.post(`/api/auth${path}`, body)
    assert.equal(answer.status, 200, `${path}: ${answer.text}`)
    return answer.body
  }
  await done('/admin/create-user', { name: 'Bob', email: 'bob@example.com', password: PASSWORD })
  await done('/admin/update-user', { userId: anna.id, data: { email: 'anna@example.com' } })
  const line = Buffer.from(JSON.stringify({ name: 'Carol', email: 'carol@example.com' }))
  const report = await importUsers(kernel, linesOf(Readable.from([line])), {
    dryRun: false,
    onBadLine: () => {},
  })
  assert.equal(report.added, 1)
  const { session } = await done('/admin/impersonate-user', { userId: ada.id })
  const impersonated = { headers: { authorization: `Bearer ${session.token}` } }
  const looked = await t.anon.get('/api/auth/get-session', impersonated)
  assert.deepEqual([looked.status, looked.headers.get('set-auth-jwt')], [200, null])
  const { code } = await done('/admin/impersonate-user', { userId: ada.id, handoff: true })
  await done('/admin/exchange-handoff', { code }, t.anon as typeof root)
  await done('/update-user', { name: 'Ada II' }, ada)
  assert.deepEqual(hook.taken(), [])
})

test('a request without a proof calls no hook', async () => {
  const t = await testService({
    config: { outbound: OUTBOUND, auth: { ...EVERY_FEATURE, hooks: { mine: hook.settings() } } },
  })
  hook.reply({})
  const ada = await t.signUp('Ada')
  hook.taken()
  const email = ada.email
  for (const [path, body] of Object.entries({
    '/sign-in/email': { email, password: 'a wrong password' },
    '/sign-in/magic-link': { email: 'new@example.com' },
    '/email-otp/send-verification-otp': { email: 'new@example.com', type: 'sign-in' },
    '/sign-in/email-otp': { email, otp: '000000' },
    '/one-time-token/verify': { token: 'x'.repeat(43) },
    '/request-password-reset': { email },
  }))
    await t.anon.post(`/api/auth${path}`, body)
  await t.anon.get(`/api/auth/magic-link/verify?token=${'x'.repeat(43)}`)
  const link = linkIn((await t.mails()).find((mail) => mail.includes('new@example.com')) ?? '')
  assert.equal((await t.anon.get(link)).status, 200, 'a look at the page of a link')
  assert.deepEqual(hook.taken(), [])
})

test('without hooks, and with hooks of other points, nothing is called', async () => {
  const idp = await startOpenidProvider()
  const t = await testService({
    config: {
      outbound: OUTBOUND,
      rate_limits: { enabled: false },
      auth: {
        ...EVERY_FEATURE,
        device: { clients: { tv: {} } },
        social: { providers: { acme: oidcSettings(idp) } },
        hooks: { mine: hook.settings({ on: ['token'] }) },
      },
    },
  })
  register(t, idp, ['acme'])
  hook.reply(REFUSE)
  for (const [name, { begin }] of Object.entries(waysIn(t, { hook, idp, told: [] }))) {
    const entered = await (await begin())()
    assert.ok(typeof entered === 'string' ? entered === '/app' : entered.status < 400, name)
  }
  assert.deepEqual(hook.taken(), [])
})

for (const [name, reply] of Object.entries({ refuses: REFUSE, 'does not answer for': { decision: 'maybe' } }))
  test(`a mail that proves the address proves it all the same when a hook ${name} the session`, async () => {
    const t = await testService({
      config: {
        outbound: OUTBOUND,
        auth: {
          email: { sign_in_after_verification: true, send_on_sign_up: true },
          hooks: { mine: hook.settings({ on: ['sign_in'] }) },
        },
      },
    })
    hook.reply({})
    const ada = await t.signUp('Ada')
    const token = new URL(linkIn((await t.mails()).at(-1) ?? ''), t.url).searchParams.get('token')
    hook.reply(reply)
    const sessions = () =>
      t.service.kernel.db
        .selectFrom('session')
        .select('id')
        .where('userId', '=', ada.id)
        .orderBy('id')
        .execute()
    const before = await sessions()
    const body = { token, password: PASSWORD }
    const { status, body: answer, headers } = await t.anon.post('/api/auth/verify-email', body)
    assert.deepEqual([status, answer.user?.emailVerified, headers.get('set-auth-token')], [200, true, null])
    assert.equal(hook.calls.at(-1)?.data.user.id, ada.id)
    assert.deepEqual(await sessions(), before)
  })
