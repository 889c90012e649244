import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forget } from '#gateway/backups/archive/forget.ts'
import { listJwtKeys } from '#identity/jwt/key-store.ts'
import { rotateJwtKeys } from '#identity/jwt/keys.ts'
import { recordCopy } from '#kernel/db/installation.ts'
import { secureRandom } from '#kernel/random.ts'
import { createSecrets, newSecret } from '#kernel/secrets.ts'
import { withClient } from '#test/database.ts'
import { TEST_SECRET, testService } from '#test/harness.ts'
import { dropSealed } from './lost-secret.ts'

const secrets = createSecrets(TEST_SECRET, secureRandom)

/** The ways in which a control database becomes another installation's, or its secret a stranger's. */
const WAYS: Readonly<Record<string, (url: string) => Promise<unknown>>> = {
  'a copy': (url) =>
    withClient(url, (client) => recordCopy(client, secrets, { random: secureRandom, now: new Date() })),
  'a restored archive': (url) => withClient(url, forget),
  'a new secret': async (url) => {
    const lines = await dropSealed(url, createSecrets(newSecret(secureRandom), secureRandom))
    assert.deepEqual(lines, ['retired 3 keys of JSON web tokens: new ones are made, which verifiers fetch'])
  },
}

for (const [way, take] of Object.entries(WAYS))
  test(`${way} retires all keys of tokens, and new ones are made`, async () => {
    const t = await testService()
    const { kernel } = t.service
    const kids = async () =>
      (await t.anon.get('/api/auth/jwks')).body.keys.map(({ kid }: { kid: string }) => kid)
    await kids()
    await rotateJwtKeys(kernel, { atOnce: true })
    const before: string[] = await kids()
    assert.equal(before.length, 3)
    await take(t.controlUrl)
    for (const { state, sealedKey } of await listJwtKeys(kernel.db))
      assert.deepEqual([state, sealedKey], ['retired', null])
    await kernel.coherence.settle()
    const after: string[] = await kids()
    assert.equal(after.length, 2)
    assert.deepEqual(
      after.filter((kid) => before.includes(kid)),
      [],
    )
    assert.equal((await (await t.signUp('Ada')).get('/api/auth/token')).status, 200)
  })

test('a copy of a database from before these keys is taken over', async () => {
  const t = await testService()
  await withClient(t.controlUrl, async (client) => {
    await client.query('drop function service.retire_jwt_keys()')
    await recordCopy(client, secrets, { random: secureRandom, now: new Date() })
  })
})
