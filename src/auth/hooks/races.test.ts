import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { request } from 'undici'
import { banByOperator, setRoleByOperator } from '#auth/admin/operator.ts'
import { type Answer, linkIn, PASSWORD, testService } from '#test/harness.ts'
import { fromNetwork, heldReply, OUTBOUND, startHookReceiver } from '#test/hooks.ts'
import { codeIn, otherThan } from '#test/mailed-codes.ts'

const hook = await startHookReceiver()
const t = await testService({
  config: {
    outbound: OUTBOUND,
    rate_limits: { enabled: false },
    server: { trusted_proxies: ['127.0.0.1'] },
    auth: {
      magic_link: { enabled: true },
      email_otp: { enabled: true },
      hooks: { mine: hook.settings({ on: ['sign_up', 'sign_in'] }) },
    },
  },
})
const { kernel } = t.service
const { db } = kernel
const codeOf = ({ status, body }: Answer) => [status, body?.code]
const signIn = (email: string) => t.anon.post('/api/auth/sign-in/email', { email, password: PASSWORD })

async function mailed(email: string): Promise<{ readonly token: string; readonly otp: string }> {
  await t.anon.post('/api/auth/sign-in/magic-link', { email })
  const mail = (await t.mails()).findLast((one) => one.includes(`To: ${email}`)) ?? ''
  return { token: new URL(linkIn(mail), t.url).searchParams.get('token') ?? '', otp: codeIn(mail) }
}
const follow = (token: string, network = 0) =>
  t.anon.get(`/api/auth/magic-link/verify?token=${token}`, fromNetwork(network))
const type = (email: string, otp: string, network = 0) =>
  t.anon.post('/api/auth/sign-in/email-otp', { email, otp }, fromNetwork(network))
const usersOf = (email: string) => db.selectFrom('user').select('id').where('email', '=', email).execute()
const sessionsOf = (userId: string) =>
  db.selectFrom('session').select('id').where('userId', '=', userId).execute()
const count = (answers: readonly Answer[]) => {
  const counts: Record<string, number> = {}
  for (const answer of answers) {
    const code = codeOf(answer).join(' ').trim()
    counts[code] = (counts[code] ?? 0) + 1
  }
  return counts
}

test('of 50 parallel requests with one link and a slow hook one wins', async () => {
  const email = 'linked@example.com'
  const { token } = await mailed(email)
  const held = heldReply()
  hook.reply(held.reply)
  const answers = Array.from({ length: 50 }, (_, network) => follow(token, network))
  await held.waiting(32)
  held.letGo()
  assert.deepEqual(count(await Promise.all(answers)), { '200': 1, '401 INVALID_TOKEN': 49 })
  const [user, ...others] = await usersOf(email)
  assert.deepEqual(others, [])
  assert.equal((await sessionsOf(user?.id ?? '')).length, 1)
})

test('of 50 parallel requests with one code and a slow hook one wins', async () => {
  const email = 'typed@example.com'
  const { otp } = await mailed(email)
  const held = heldReply()
  hook.reply(held.reply)
  const answers = Array.from({ length: 50 }, (_, network) => type(email, otp, network))
  await held.waiting(32)
  held.letGo()
  const { 200: won, ...lost } = count(await Promise.all(answers))
  assert.equal(won, 1)
  assert.equal(
    Object.entries(lost).reduce((sum, [code, times]) => sum + (/^40[03] /.test(code) ? times : 0), 0),
    49,
    JSON.stringify(lost),
  )
  assert.equal((await usersOf(email)).length, 1)
})

test('a code is used by another request while the hook is asked: the hook has agreed to nothing', async () => {
  const email = 'used@example.com'
  const { otp } = await mailed(email)
  const held = heldReply()
  hook.reply(held.reply)
  const slow = type(email, otp)
  await held.waiting(1)
  hook.reply({})
  assert.equal((await type(email, otp)).status, 200)
  held.letGo()
  assert.deepEqual(codeOf(await slow), [400, 'INVALID_OTP'])
})

test('a hook that refuses or fails gives no further tries at a code', async () => {
  const email = 'tries@example.com'
  const { otp } = await mailed(email)
  hook.reply({ decision: 'refuse' })
  const before = hook.calls.length
  const codes: unknown[] = []
  for (let wrong = 0; wrong < 3; wrong++) {
    codes.push((await type(email, otp)).body.code, (await type(email, otherThan(otp))).body.code)
  }
  assert.deepEqual(codes, [
    'REFUSED_BY_HOOK',
    'INVALID_OTP',
    'REFUSED_BY_HOOK',
    'INVALID_OTP',
    'REFUSED_BY_HOOK',
    'INVALID_OTP',
  ])
  assert.equal(hook.calls.length, before + 3, 'a wrong code calls no hook')
  hook.reply({})
  assert.deepEqual(codeOf(await type(email, otp)), [403, 'TOO_MANY_ATTEMPTS'])
})

test('what the sign-in relies on ends while the hook is asked: there is no session', async () => {
  const CHANGES: Readonly<
    Record<string, readonly [(id: string, token: string) => Promise<unknown>, readonly unknown[]]>
  > = {
    banned: [(id) => banByOperator(kernel, id, { reason: null, expires: null }), [403, 'BANNED_USER']],
    'another password': [
      (_id, token) =>
        t.anon.post(
          '/api/auth/change-password',
          { currentPassword: PASSWORD, newPassword: 'another good password' },
          { headers: { authorization: `Bearer ${token}` } },
        ),
      [401, 'INVALID_EMAIL_OR_PASSWORD'],
    ],
  }
  for (const [name, [change, failure]] of Object.entries(CHANGES)) {
    hook.reply({})
    const ada = await t.signUp('Ada')
    const before = await sessionsOf(ada.id)
    const held = heldReply()
    hook.reply(held.reply)
    const slow = signIn(ada.email)
    await held.waiting(1)
    await change(ada.id, ada.token)
    held.letGo()
    assert.deepEqual(codeOf(await slow), failure, name)
    assert.ok((await sessionsOf(ada.id)).length <= before.length, name)
  }
})

test('a hook is asked again about a user who has changed while it was asked', async () => {
  hook.reply({})
  const ada = await t.signUp('Ada')
  const held = heldReply()
  hook.reply(held.reply)
  const slow = signIn(ada.email)
  await held.waiting(1)
  const asked = hook.calls.length
  await setRoleByOperator(kernel, ada.id, 'admin')
  hook.reply((response, { data }) =>
    response.end(JSON.stringify(data.user.role === 'admin' ? { decision: 'refuse' } : {})),
  )
  held.letGo()
  assert.deepEqual(codeOf(await slow), [403, 'REFUSED_BY_HOOK'])
  assert.deepEqual(
    hook.calls.slice(asked - 1).map(({ data }) => data.user.role),
    ['user', 'admin'],
  )
})

test('a caller who leaves while the hook is asked leaves nothing half done', async () => {
  const email = 'left@example.com'
  const { token } = await mailed(email)
  const held = heldReply()
  hook.reply(held.reply)
  const leaving = new AbortController()
  const left = request(`${t.url}/api/auth/magic-link/verify?token=${token}`, { signal: leaving.signal })
  await held.waiting(1)
  leaving.abort()
  await assert.rejects(left)
  held.letGo()
  hook.reply({})
  // Either the act is done, or the link still works.
  while ((await usersOf(email)).length === 0) await sleep(5)
  assert.deepEqual(codeOf(await follow(token)), [401, 'INVALID_TOKEN'])
})
