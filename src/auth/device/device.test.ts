import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tokenHash } from '#identity/tokens.ts'
import { approve, askForCodes, DEVICE_CLIENTS, deny, deviceOf, GRANT_TYPE, poll } from '#test/devices.ts'
import { type Answer, BROWSER, FORM, testClock, testService } from '#test/harness.ts'

const t = await testService({
  clock: testClock({ isStopped: true }),
  config: { auth: { device: { clients: DEVICE_CLIENTS } } },
})
const { kernel } = t.service
const { db } = kernel
const [SECOND, MINUTE] = [1_000, 60_000]

const outcome = ({ status, body }: Answer) => [status, body.error]
const rowOf = ({ deviceCode }: { readonly deviceCode: string }) =>
  db
    .selectFrom('deviceAuthorization')
    .selectAll()
    .where('deviceHash', '=', tokenHash(deviceCode))
    .executeTakeFirst()
const sessionOf = (token: string) =>
  db.selectFrom('session').selectAll().where('tokenHash', '=', tokenHash(token)).executeTakeFirstOrThrow()

test('a device gets a session of the user who approves it, and no cookie', async () => {
  const ada = await t.signUp('Ada')
  const { status, body } = await t.anon.post('/api/auth/device/code', {
    client_id: 'tv',
    scope: 'everything',
  })
  assert.equal(status, 200)
  assert.match(body.device_code, /^[\w-]{43}$/)
  assert.match(body.user_code, /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/)
  const page = `${kernel.publicUrl()}/api/auth/device`
  assert.deepEqual(
    [body.verification_uri, body.verification_uri_complete, body.expires_in, body.interval],
    [page, `${page}?user_code=${body.user_code}`, 600, 5],
  )
  const asked = { deviceCode: body.device_code, userCode: body.user_code }
  assert.deepEqual(outcome(await poll(t, asked)), [400, 'authorization_pending'])
  assert.deepEqual((await approve(ada, asked)).body, { success: true })

  t.advance(5 * SECOND)
  const answer = await t.anon.send('POST', '/api/auth/device/token', {
    raw: new URLSearchParams({
      grant_type: GRANT_TYPE,
      device_code: asked.deviceCode,
      client_id: 'tv',
    }).toString(),
    headers: { ...FORM, 'user-agent': 'tv/1.0' },
  })
  assert.equal(answer.status, 200, answer.text)
  const { access_token, token_type, expires_in, scope } = answer.body
  assert.deepEqual([token_type, expires_in, scope], ['Bearer', 7 * 86_400, 'films series'])
  assert.equal(answer.headers.get('set-auth-token'), access_token)
  assert.equal(answer.headers.get('set-cookie'), null)
  assert.equal(answer.headers.get('cache-control'), 'no-store')
  assert.equal(answer.headers.get('x-service-known-device'), null)
  const headers = { authorization: `Bearer ${access_token}` }
  const { body: current } = await t.anon.get('/api/auth/get-session', { headers })
  assert.deepEqual([current.user.id, current.session.userAgent], [ada.id, 'tv/1.0'])
  const listed = await ada.get('/api/auth/list-sessions')
  assert.equal(listed.body.length, 2)
  t.advance(5 * SECOND)
  assert.deepEqual(outcome(await poll(t, asked)), [400, 'invalid_grant'])
})

test('only hashes of both codes are stored, and that of the short one needs the secret', async () => {
  const { deviceCode, userCode } = await askForCodes(t)
  const row = await rowOf({ deviceCode })
  const text = JSON.stringify(row)
  for (const code of [deviceCode, userCode, userCode.replace('-', '')]) assert.ok(!text.includes(code))
  assert.notDeepEqual(row?.userCodeHash, tokenHash(userCode.replace('-', '')))
  assert.equal(row?.userCodeHash.length, 32)
})

test('the settings name program and scopes, never the request', async () => {
  const ada = await t.signUp('Ada')
  const asked = await askForCodes(t)
  const path = `/api/auth/device?user_code=${asked.userCode.toLowerCase().replace('-', '')}`
  const waiting = { user_code: asked.userCode, status: 'pending' }
  assert.deepEqual((await t.anon.get(path)).body, waiting, 'a stranger learns no more')
  const client = { client_id: 'tv', client_name: 'Living room', scope: 'films series' }
  assert.deepEqual((await ada.get(path)).body, { ...waiting, ...client })
  await approve(ada, asked)
  assert.deepEqual((await ada.get(path)).body, { ...waiting, status: 'approved' })
  for (const client_id of ['', 'TV', 'other', 'constructor', '__proto__x', 'toString']) {
    const refused = await t.anon.post('/api/auth/device/code', { client_id })
    assert.deepEqual(outcome(refused), [400, 'invalid_client'], client_id)
    assert.deepEqual(outcome(await poll(t, asked, client_id)), [400, 'invalid_client'], client_id)
  }
})

test('a device that polls too fast has to wait five seconds longer, for good', async () => {
  const asked = await askForCodes(t)
  const expected: readonly (readonly [after: number, error: string])[] = [
    [0, 'authorization_pending'],
    [4, 'slow_down'], // 10 from now on
    [10, 'authorization_pending'],
    [9, 'slow_down'], // 15
    [14, 'slow_down'], // 20
    [20, 'authorization_pending'],
    [20, 'authorization_pending'],
    [19, 'slow_down'], // 25
    [25, 'authorization_pending'],
  ]
  for (const [index, [after, error]] of expected.entries()) {
    t.advance(after * SECOND)
    assert.deepEqual(outcome(await poll(t, asked)), [400, error], `poll ${index}`)
  }
  const ada = await t.signUp('Ada')
  await approve(ada, asked)
  assert.deepEqual(outcome(await poll(t, asked)), [400, 'slow_down'], 'approved, and too early all the same')
  t.advance(30 * SECOND)
  assert.equal((await poll(t, asked)).status, 200)
})

test('a refused, expired, unknown, foreign or malformed code is refused in the words of the RFC', async () => {
  const ada = await t.signUp('Ada')
  const [refused, expired, foreign] = [await askForCodes(t), await askForCodes(t), await askForCodes(t)]
  assert.deepEqual((await deny(ada, refused)).body, { success: true })
  assert.deepEqual(outcome(await poll(t, refused)), [400, 'access_denied'])
  assert.deepEqual(outcome(await poll(t, refused)), [400, 'access_denied'])
  await approve(ada, foreign)
  assert.deepEqual(outcome(await poll(t, foreign, 'gatehouse')), [400, 'invalid_grant'])
  assert.equal((await poll(t, foreign)).status, 200)
  for (const deviceCode of ['', 'x', 'A'.repeat(43)])
    assert.deepEqual(outcome(await poll(t, { deviceCode })), [400, 'invalid_grant'])
  const token = (body: object) => t.anon.post('/api/auth/device/token', body)
  const whole = { grant_type: GRANT_TYPE, device_code: expired.deviceCode, client_id: 'tv' }
  assert.deepEqual(outcome(await token({ ...whole, grant_type: 'password' })), [
    400,
    'unsupported_grant_type',
  ])
  const { device_code: _, ...partial } = whole
  const lacking = await token(partial)
  assert.deepEqual(outcome(lacking), [400, 'invalid_request'])
  assert.deepEqual(
    [lacking.body.code, lacking.body.error_description],
    ['VALIDATION_ERROR', lacking.body.message],
  )

  t.advance(10 * MINUTE)
  assert.deepEqual(outcome(await poll(t, expired)), [400, 'expired_token'])
  assert.deepEqual(outcome(await approve(ada, expired)), [400, 'expired_token'])
  assert.deepEqual(outcome(await ada.get(`/api/auth/device?user_code=${expired.userCode}`)), [
    400,
    'expired_token',
  ])
})

test('an approval that is not fetched in time is worth nothing', async () => {
  const ada = await t.signUp('Ada')
  const asked = await askForCodes(t)
  await approve(ada, asked)
  t.advance(10 * MINUTE)
  assert.deepEqual(outcome(await poll(t, asked)), [400, 'expired_token'])
  assert.equal((await ada.get('/api/auth/list-sessions')).body.length, 1)
})

test('each device is answered once, whoever asks again', async () => {
  const [ada, bob] = [await t.signUp('Ada'), await t.signUp('Bob')]
  const [approved, denied] = [await askForCodes(t), await askForCodes(t)]
  await approve(ada, approved)
  await deny(ada, denied)
  for (const asked of [approved, denied])
    for (const who of [ada, bob])
      for (const answer of [approve, deny]) {
        const { status, body } = await answer(who, asked)
        assert.deepEqual(
          [status, body.error, body.code],
          [400, 'invalid_request', 'DEVICE_CODE_ALREADY_PROCESSED'],
        )
      }
  const unknown = await approve(ada, { userCode: 'BBBB-BBBB' })
  assert.deepEqual([...outcome(unknown), unknown.body.code], [400, 'invalid_request', 'INVALID_USER_CODE'])
  const { body } = await poll(t, approved)
  assert.equal((await sessionOf(body.access_token)).userId, ada.id)
})

test('looking changes nothing and binds nobody', async () => {
  const [ada, bob] = [await t.signUp('Ada'), await t.signUp('Bob')]
  const asked = await askForCodes(t)
  const before = await rowOf(asked)
  for (const method of ['GET', 'HEAD'])
    for (const headers of [{}, BROWSER])
      for (const who of [ada, bob, t.anon])
        for (const path of ['device', 'confirm/device'])
          await who.send(method, `/api/auth/${path}?user_code=${asked.userCode}`, { headers })
  assert.deepEqual(await rowOf(asked), before)
  await approve(bob, asked)
  assert.equal((await sessionOf((await poll(t, asked)).body.access_token)).userId, bob.id)
})

test('codes that expired an hour ago are pruned', async () => {
  const ada = await t.signUp('Ada')
  const asked = await askForCodes(t)
  await approve(ada, asked)
  const prune = () => t.service.recurring.find(({ name }) => name === 'prune-devices')?.run()
  t.advance(69 * MINUTE)
  await prune()
  assert.ok(await rowOf(asked))
  t.advance(2 * MINUTE)
  await prune()
  assert.equal(await rowOf(asked), undefined)
  assert.deepEqual(outcome(await poll(t, asked)), [400, 'invalid_grant'])
})

test('a session of a device is one like others: it acts, and is ended with them', async () => {
  const ada = await t.signUp('Ada')
  const device = await deviceOf(t, ada)
  assert.equal((await device.post('/api/auth/update-user', { name: 'Ada of the device' })).status, 200)
  assert.equal((await ada.post('/api/auth/revoke-other-sessions')).body.count, 1)
  assert.equal((await device.get('/api/auth/get-session')).status, 401)
  assert.equal((await ada.get('/api/auth/get-session')).status, 200)
})
