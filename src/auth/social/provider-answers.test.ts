import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import { person } from '#test/identity-provider/visits.ts'

const { clock, idp, t, idToken } = await startSocialService()

const withIdToken = (token: string) =>
  t.anon.post('/api/auth/sign-in/social', { provider: 'acme', idToken: { token } })

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
      clock.advance(9_000)
      await fail()
      clock.advance(1_001)
      await fail()
    })
    assert.equal(count, 2, body)
    clock.advance(10_001)
  }
  assert.match(t.log.join('\n'), /jwks has status 500/)
  assert.equal((await withIdToken(await idToken(person('Keyed')))).status, 200)
})
