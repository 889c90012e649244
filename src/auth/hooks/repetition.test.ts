import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signInAnonymously } from '#test/anonymous.ts'
import { approve, askForCodes, DEVICE_CLIENTS, poll } from '#test/devices.ts'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { type Answer, linkIn, PASSWORD, testClock, testService } from '#test/harness.ts'
import { OUTBOUND, REFUSE, startHookReceiver } from '#test/hooks.ts'

const hook = await startHookReceiver()
const MINUTE = 60_000
const t = await testService({
  clock: testClock({ isStopped: true }),
  config: {
    outbound: OUTBOUND,
    server: { trusted_proxies: ['127.0.0.1'] },
    rate_limits: {
      enabled: true,
      rules: {
        sign_in: { requests: 5, window: MINUTE },
        mail_recipient: { requests: 3, window: 60 * MINUTE },
      },
    },
    auth: {
      ...EVERY_FEATURE,
      device: { clients: DEVICE_CLIENTS },
      hooks: { mine: hook.settings({ on: ['sign_up', 'sign_in'] }) },
    },
  },
})
const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
const codeOf = ({ status, body }: Answer) => [status, body?.code]
const tokenIn = (mail = ''): string => new URL(linkIn(mail), t.url).searchParams.get('token') ?? ''

test('a link that a hook refuses can be followed a few times a minute, also in a session', async () => {
  hook.reply({})
  const ada = await t.signUp('Ada')
  await t.mails()
  await t.anon.post('/api/auth/sign-in/magic-link', { email: 'new@example.com' })
  const link = tokenIn((await t.mails()).at(-1))
  hook.reply(REFUSE)
  const statusesOf = async (path: string, address: string) => {
    const statuses: number[] = []
    for (let index = 0; index < 7; index++) statuses.push((await ada.get(path, from(address))).status)
    return statuses
  }
  hook.taken()
  assert.deepEqual(
    await statusesOf(`/api/auth/magic-link/verify?token=${link}`, '192.0.2.1'),
    [403, 403, 403, 403, 403, 429, 429],
  )
  assert.equal(hook.taken().length, 5)
  const ofEmail = await statusesOf(`/api/auth/verify-email?token=${link}`, '192.0.2.2')
  assert.deepEqual(ofEmail.slice(5), [429, 429])
  assert.ok(!ofEmail.slice(0, 5).includes(429))
})

test('tries that a hook fails use up no notice: the change of the password is told', async () => {
  hook.reply({})
  const anna = await signInAnonymously(t)
  const email = 'anna@example.com'
  await anna.post('/api/auth/sign-up/email', { name: 'Anna', email, password: PASSWORD })
  const token = tokenIn((await t.mails()).at(-1))
  hook.reply((response) => response.writeHead(500).end())
  const body = { token, newPassword: 'another horse staple' }
  const choose = (index: number) => t.anon.post('/api/auth/verify-email', body, from(`198.51.100.${index}`))
  for (let index = 0; index < 5; index++)
    assert.deepEqual(codeOf(await choose(index)), [503, 'HOOK_UNAVAILABLE'])
  assert.deepEqual(await t.mails(), [], 'nothing has changed')
  hook.reply({})
  const { status, text } = await choose(5)
  assert.equal(status, 200, text)
  const told = (await t.mails()).filter((mail) => mail.includes(`To: ${email}`))
  assert.deepEqual(
    told.map((mail) => /^Subject: (.*?)\r?$/m.exec(mail)?.[1]),
    ['Your password was changed'],
  )
})

test('an approved device that polls too early is told to slow down, and the hook is not called', async () => {
  hook.reply({})
  const eve = await t.signUp('Eve')
  const asked = await askForCodes(t)
  assert.equal((await approve(eve, asked)).status, 200)
  hook.reply(REFUSE)
  hook.taken()
  assert.deepEqual(codeOf(await poll(t, asked)), [403, 'REFUSED_BY_HOOK'])
  for (let early = 0; early < 3; early++) assert.equal((await poll(t, asked)).body.error, 'slow_down')
  assert.deepEqual(hook.taken(), ['before.sign_in device'])
  t.advance(MINUTE)
  hook.reply({})
  assert.equal((await poll(t, asked)).status, 200)
})
