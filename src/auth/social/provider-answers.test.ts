import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeJwt } from 'jose'
import { listLinkedAccounts } from '#identity/provider-tokens.ts'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import { person } from '#test/identity-provider/visits.ts'

const { clock, idp, t, kernel, idToken } = await startSocialService()

const withIdToken = (token: string, more: object = {}) =>
  t.anon.post('/api/auth/sign-in/social', { provider: 'acme', idToken: { token, ...more } })

/** The provider answers requests to this path so until the work ends. Also returns their number. */
async function answering<T>(path: string, status: number, body: object | string, work: () => Promise<T>) {
  let count = 0
  idp.intercept = (request, response) => {
    if (request.url !== path) return false
    count++
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
    return true
  }
  const result = await work()
  idp.intercept = () => false
  return { result, count }
}

test('a refresh whose ID token is of another account, issuer or client is refused, and the old tokens stay', async () => {
  const { sub, email } = person('Refreshed')
  const right = { sub, email, email_verified: true }
  const tokens = { accessToken: 'old access', refreshToken: 'old refresh' }
  const { body } = await withIdToken(await idToken(right), tokens)
  const options = { headers: { authorization: `Bearer ${body.token}` } }
  const refresh = async (id_token: string | undefined) => {
    const given = { access_token: 'new access', refresh_token: 'new refresh', token_type: 'Bearer', id_token }
    const ask = () => t.anon.post('/api/auth/refresh-token', { providerId: 'acme' }, options)
    return (await answering('/token', 200, given, ask)).result
  }
  const stored = () => listLinkedAccounts(kernel, body.user.id)
  const before = await stored()
  const wrong = {
    'another account': await idToken({ ...right, sub: person('Other').sub }),
    'another issuer': await idToken({ ...right, iss: 'https://evil.example' }),
    'another client': await idToken({ ...right, aud: 'another client' }),
    'no subject': await idToken({ email }),
  }
  for (const [what, token] of Object.entries(wrong)) {
    const answer = await refresh(token)
    assert.deepEqual([answer.status, answer.body.code], [400, 'FAILED_TO_REFRESH_ACCESS_TOKEN'], what)
    assert.doesNotMatch(answer.text, /new access/)
    assert.deepEqual(await stored(), before, what)
  }
  const again = await refresh(await idToken(right))
  assert.deepEqual([again.status, again.body.accessToken], [200, 'new access'])
  const refreshed = (await stored())[0]?.idToken ?? ''
  assert.equal(decodeJwt(refreshed).sub, sub)
  const without = await refresh(undefined)
  assert.deepEqual([without.status, (await stored())[0]?.idToken], [200, refreshed])
  assert.deepEqual([again.body.idToken, without.body.idToken], [null, null], 'it would sign in')
})

test('keys that cannot be read are a failure of the provider, not of the token, and are asked for once in 10 s', async () => {
  const token = await idToken({ sub: person('Keyless').sub })
  // Longer than keys are held.
  clock.advance(601_000)
  const fail = async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => withIdToken(token)))
    for (const { status, body, headers } of answers) {
      assert.deepEqual([status, body.code], [503, 'PROVIDER_UNAVAILABLE'])
      assert.match(body.message, /keys/)
      assert.ok(Number(headers.get('retry-after')) <= 10)
    }
  }
  for (const [status, body] of [
    [500, '{}'],
    [200, '<html>maintenance</html>'],
    [200, '{"keys":7}'],
  ] as const) {
    const { count } = await answering('/jwks', status, body, async () => {
      await fail()
      clock.advance(5_000)
      await fail()
      clock.advance(5_001)
      await fail()
    })
    assert.equal(count, 2, body)
    clock.advance(10_001)
  }
  assert.match(t.log.join('\n'), /jwks has status 500/)
  assert.equal((await withIdToken(await idToken(person('Keyed')))).status, 200)
})
