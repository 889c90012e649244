import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose'
import { secureRandom } from '#kernel/random.ts'
import { createSecrets } from '#kernel/secrets.ts'
import { controlDatabase, TEST_SECRET, type TestService, testClock, testService } from '#test/harness.ts'
import { type JwtKeyState, listJwtKeys } from './key-store.ts'
import { maintainJwtKeys, resealJwtKeys, retireJwtKey, rotateJwtKeys } from './keys.ts'

const AUTH = '/api/auth'
const [HOUR, DAY] = [3_600_000, 86_400_000]

const jwksOf = async (t: TestService): Promise<JSONWebKeySet> => (await t.anon.get(`${AUTH}/jwks`)).body
const kidsOf = (set: JSONWebKeySet) => set.keys.map(({ kid }) => kid)
const statesOf = async (t: TestService) => (await listJwtKeys(t.service.kernel.db)).map(({ state }) => state)
const idOf = async (t: TestService, state: JwtKeyState) =>
  (await listJwtKeys(t.service.kernel.db)).find((key) => key.state === state)?.id ?? ''
const algorithmOf = async (t: TestService, state: JwtKeyState) =>
  (await listJwtKeys(t.service.kernel.db)).find((key) => key.state === state)?.algorithm

/** Signs up, and returns a function that asks for a token of the session. */
async function asker(t: TestService, name: string) {
  const user = await t.signUp(name)
  return async (): Promise<string> => {
    const { status, body, text } = await user.get(`${AUTH}/token`)
    assert.equal(status, 200, text)
    return body.token
  }
}
const isStopped = { isStopped: true }

test('two processes that are asked at once make one key that signs and one that is next', async () => {
  const controlUrl = await controlDatabase()
  const [one, other] = [await testService({ controlUrl }), await testService({ controlUrl })]
  const askers = [await asker(one, 'Ada'), await asker(other, 'Bea')]
  const tokens = await Promise.all(Array.from({ length: 40 }, (_, index) => askers[index % 2]?.() ?? ''))
  assert.equal(new Set(tokens.map((token) => decodeProtectedHeader(token).kid)).size, 1)
  assert.deepEqual(await statesOf(one), ['signing', 'standby'])
  await Promise.all(
    [one, other, one, other].map(({ service }) => rotateJwtKeys(service.kernel, { atOnce: true })),
  )
  assert.deepEqual((await statesOf(one)).toSorted(), [...Array(4).fill('previous'), 'signing', 'standby'])
  assert.deepEqual(kidsOf(await jwksOf(one)), kidsOf(await jwksOf(other)))
})

test('through rotations no verifier that keeps the keys for a day meets an unknown one', async () => {
  const clock = testClock(isStopped)
  const t = await testService({
    clock,
    config: { auth: { jwt: { rotate_every: 2 * DAY, expires_in: DAY } } },
  })
  const { kernel } = t.service
  // Tokens of the second one begin in the middle of those of the first, so a rotation finds some of the key before.
  const askers = [await asker(t, 'Ada'), await asker(t, 'Bea')] as const
  let [cached, cachedAt] = [await jwksOf(t), kernel.now().getTime()]
  const signers = new Set<string | undefined>()
  const ends = new Map<string, number>()
  let [checked, ofEarlierKeys] = [0, 0]
  for (let hours = 0; hours < 9 * 24; hours += 2) {
    await maintainJwtKeys(kernel)
    const latest = await Promise.all(askers.slice(0, hours < 14 ? 1 : 2).map((ask) => ask()))
    const signer = decodeProtectedHeader(latest[0] ?? '').kid
    signers.add(signer)
    for (const token of latest) ends.set(token, 1_000 * (decodeJwt(token).exp ?? 0))
    for (const [token] of [...ends].filter(([, end]) => end > kernel.now().getTime())) {
      for (const keys of [cached, await jwksOf(t)])
        await jwtVerify(token, createLocalJWKSet(keys), { currentDate: kernel.now() })
      checked++
      if (decodeProtectedHeader(token).kid !== signer) ofEarlierKeys++
    }
    t.advance(2 * HOUR)
    if (kernel.now().getTime() - cachedAt >= DAY)
      [cached, cachedAt] = [await jwksOf(t), kernel.now().getTime()]
  }
  assert.ok(signers.size >= 4, `${signers.size} keys have signed`)
  assert.ok(checked > 200 && ofEarlierKeys > 5, `${checked} tokens, ${ofEarlierKeys} of earlier keys`)
  const states = await statesOf(t)
  assert.deepEqual(
    ['signing', 'standby'].map((state) => states.filter((each) => each === state).length),
    [1, 1],
  )
  assert.ok(states.includes('retired'))
})

test('a key that signs no more has no private part in the database', async () => {
  const t = await testService()
  await (await asker(t, 'Ada'))()
  await rotateJwtKeys(t.service.kernel, { atOnce: true })
  for (const { state, sealedKey } of await listJwtKeys(t.service.kernel.db))
    assert.equal(sealedKey === null, state === 'previous', state)
})

test('the next key does not sign before it has been published for 25 hours, unless it is told to', async () => {
  const t = await testService({ clock: testClock(isStopped) })
  const { kernel } = t.service
  await (await asker(t, 'Ada'))()
  const next = await idOf(t, 'standby')
  t.advance(24 * HOUR)
  await assert.rejects(rotateJwtKeys(kernel, { atOnce: false }), /rotate from \d{4}-.*Z, or add --now/)
  t.advance(HOUR)
  await rotateJwtKeys(kernel, { atOnce: false })
  assert.equal(await idOf(t, 'signing'), next)
})

test('a retired key is published no more, its tokens are made anew, and the next one signs at once', async () => {
  const t = await testService()
  const { kernel } = t.service
  const ask = await asker(t, 'Ada')
  const before = await ask()
  const [signing, standby] = [await idOf(t, 'signing'), await idOf(t, 'standby')]
  await retireJwtKey(kernel, signing)
  const after = await ask()
  assert.notEqual(after, before)
  assert.equal(decodeProtectedHeader(after).kid, standby)
  const published = kidsOf(await jwksOf(t))
  assert.ok(!published.includes(signing) && published.includes(standby) && published.length === 2)
  await assert.rejects(retireJwtKey(kernel, signing), /retired already/)
  await assert.rejects(retireJwtKey(kernel, signing.replace(/.$/, 'x')), /There is no key/)
})

test('another algorithm signs once its key has been published', async () => {
  const controlUrl = await controlDatabase()
  const clock = testClock(isStopped)
  const first = await testService({ controlUrl, clock })
  await (await asker(first, 'Ada'))()
  const t = await testService({ controlUrl, clock, config: { auth: { jwt: { algorithm: 'EdDSA' } } } })
  const { kernel } = t.service
  await maintainJwtKeys(kernel)
  assert.deepEqual([await algorithmOf(t, 'signing'), await algorithmOf(t, 'standby')], ['ES256', 'EdDSA'])
  const ask = await asker(t, 'Bea')
  t.advance(25 * HOUR)
  await maintainJwtKeys(kernel)
  const token = await ask()
  assert.equal(decodeProtectedHeader(token).alg, 'EdDSA')
  await jwtVerify(token, createLocalJWKSet(await jwksOf(t)), { currentDate: kernel.now() })
})

test('the keys are sealed with a new secret, and those that no secret opens are replaced', async () => {
  const controlUrl = await controlDatabase()
  const before = await testService({ controlUrl })
  await (await asker(before, 'Ada'))()
  const next = 'another-secret-of-the-tests-0123456789'
  const rotating = await testService({ controlUrl, secrets: createSecrets(next, secureRandom, TEST_SECRET) })
  await resealJwtKeys(rotating.service.kernel)
  const after = await testService({ controlUrl, secrets: createSecrets(next, secureRandom) })
  const ids = kidsOf(await jwksOf(before))
  await (await asker(after, 'Bea'))()
  assert.deepEqual(kidsOf(await jwksOf(after)), ids)

  const lost = await testService({ controlUrl, secrets: createSecrets(`${next}-2`, secureRandom) })
  const cem = await lost.signUp('Cem')
  assert.equal((await cem.get(`${AUTH}/token`)).status, 503)
  await maintainJwtKeys(lost.service.kernel)
  assert.equal((await cem.get(`${AUTH}/token`)).status, 200)
})

test('without tokens no key is made', async () => {
  const t = await testService({ config: { auth: { jwt: { enabled: false } } } })
  await maintainJwtKeys(t.service.kernel)
  assert.deepEqual(await statesOf(t), [])
})
