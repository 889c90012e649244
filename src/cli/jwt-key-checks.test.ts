import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listJwtKeys } from '#identity/jwt/key-store.ts'
import { rotateJwtKeys } from '#identity/jwt/keys.ts'
import { secureRandom } from '#kernel/random.ts'
import { createSecrets } from '#kernel/secrets.ts'
import { TEST_SECRET, testService } from '#test/harness.ts'
import { jwtKeyFindings } from './jwt-key-checks.ts'

const t = await testService()
const { kernel } = t.service
const { config, db } = kernel
const OTHER = 'another-secret-of-more-than-32-characters'

test('the doctor names the keys that should sign tokens and that no secret opens', async () => {
  await (await t.signUp('Ada')).get('/api/auth/token')
  await rotateJwtKeys(kernel, { atOnce: true })
  assert.deepEqual(await jwtKeyFindings(kernel, db), [])
  const secrets = createSecrets(OTHER, secureRandom)
  const found = await jwtKeyFindings({ config, secrets }, db)
  const idOf = Object.fromEntries((await listJwtKeys(db)).map(({ id, state }) => [state, id]))
  assert.deepEqual(
    new Set(found.map(({ subject, ok }) => [subject, ok].join())),
    new Set([`jwt key ${idOf.signing},false`, `jwt key ${idOf.standby},false`]),
  )
  const says = found.find(({ subject }) => subject.endsWith(idOf.signing ?? ''))?.says ?? ''
  assert.match(says, /no secret of this installation opens it.*gatehouse jwt-keys rotate --now/)
})

test('a key that the previous secret opens is none of them, and neither is one without tokens', async () => {
  const rotating = createSecrets(OTHER, secureRandom, TEST_SECRET)
  assert.deepEqual(await jwtKeyFindings({ config, secrets: rotating }, db), [])
  const off = { ...config, auth: { ...config.auth, jwt: { ...config.auth.jwt, enabled: false } } }
  assert.deepEqual(await jwtKeyFindings({ config: off, secrets: createSecrets(OTHER, secureRandom) }, db), [])
})
