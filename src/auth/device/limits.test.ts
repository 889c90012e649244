import assert from 'node:assert/strict'
import { test } from 'node:test'
import { approve, askForCodes, DEVICE_CLIENTS, deny, poll } from '#test/devices.ts'
import { testClock, testService } from '#test/harness.ts'

const t = await testService({
  clock: testClock({ isStopped: true }),
  config: {
    auth: { device: { clients: DEVICE_CLIENTS } },
    server: { trusted_proxies: ['127.0.0.1'] },
    rate_limits: {
      enabled: true,
      rules: { user_code: { requests: 5, window: 60_000 }, device_code: { requests: 3, window: 60_000 } },
    },
  },
})

const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })

test('guesses of user codes are counted by address, with a session or without', async () => {
  const ada = await t.signUp('Ada')
  const guess = (index: number) => `/api/auth/device?user_code=BBBB-BBB${'BCDFGHJK'[index]}`
  const statuses: number[] = []
  for (let index = 0; index < 7; index++)
    statuses.push((await (index % 2 ? ada : t.anon).get(guess(index), from('192.0.2.1'))).status)
  assert.deepEqual(statuses, [400, 400, 400, 400, 400, 429, 429])
  const page = await t.anon.get('/api/auth/confirm/device?user_code=BBBB-BBBB', {
    headers: { ...from('192.0.2.1').headers, accept: 'text/html' },
  })
  assert.equal(page.status, 429)
  assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
  assert.ok(Number(page.headers.get('retry-after')) > 0)
  assert.equal((await t.anon.get(guess(0), from('192.0.2.2'))).status, 400)
})

test('a user who guesses from many addresses is stopped too, also with a right code', async () => {
  const [ada, bob] = [await t.signUp('Ada'), await t.signUp('Bob')]
  const asked = await askForCodes(t)
  const statuses: number[] = []
  for (let index = 0; index < 6; index++) {
    const act = index % 2 ? approve : deny
    const body = { userCode: 'BBBB-BBBB' }
    const path = `/api/auth/device/${act === approve ? 'approve' : 'deny'}`
    statuses.push((await ada.post(path, body, from(`198.51.100.${index}`))).status)
  }
  assert.deepEqual(statuses, [400, 400, 400, 400, 400, 429])
  const late = await ada.post('/api/auth/device/approve', { userCode: asked.userCode }, from('198.51.100.99'))
  assert.deepEqual([late.status, late.body.code], [429, 'TOO_MANY_REQUESTS'])
  assert.equal((await poll(t, asked)).body.error, 'authorization_pending')
  const other = await bob.post(
    '/api/auth/device/approve',
    { userCode: asked.userCode },
    from('198.51.100.98'),
  )
  assert.equal(other.status, 200)
})

test('an address asks for so many codes and no more', async () => {
  const statuses: number[] = []
  for (let index = 0; index < 5; index++)
    statuses.push(
      (await t.anon.post('/api/auth/device/code', { client_id: 'tv' }, from('203.0.113.1'))).status,
    )
  assert.deepEqual(statuses, [200, 200, 200, 429, 429])
})
