import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { rotateJwtKeys } from '#identity/jwt/keys.ts'
import { PYTHON_FOLDER, WITHOUT_PYTHON } from '#test/generated-clients/tools.ts'
import { testService } from '#test/harness.ts'

const python = path.join(PYTHON_FOLDER, 'bin', 'python')
const PROGRAM = fileURLToPath(new URL('verify.py', import.meta.url))
for (const algorithm of ['ES256', 'EdDSA'] as const)
  test(`PyJWT verifies tokens of ${algorithm}, also after a rotation, and refuses an altered one`, {
    skip: WITHOUT_PYTHON,
  }, async () => {
    const t = await testService({ config: { auth: { jwt: { algorithm } } } })
    const ask = async (name: string) => {
      const user = await t.signUp(name)
      return { id: user.id, token: (await user.get('/api/auth/token')).body.token as string }
    }
    const before = [await ask('Ada'), await ask('Bea')]
    // It knows the next key from the beginning.
    const keys = (await t.anon.get('/api/auth/jwks')).body
    await rotateJwtKeys(t.service.kernel, { atOnce: true })
    const all = [...before, await ask('Cem')]
    const verify = (tokens: readonly string[]) =>
      spawnSync(python, [PROGRAM], {
        input: JSON.stringify({ keys, tokens, issuer: t.service.kernel.publicUrl() }),
        encoding: 'utf8',
      })
    const { status, stdout, stderr } = verify(all.map(({ token }) => token))
    assert.equal(status, 0, stderr)
    assert.deepEqual(
      JSON.parse(stdout),
      all.map(({ id }) => id),
    )
    const [head = '', body = '', mac = ''] = all[0]?.token.split('.') ?? []
    const other = Buffer.from(body, 'base64url').toString().replace('"user"', '"admin"')
    const forged = verify([`${head}.${Buffer.from(other).toString('base64url')}.${mac}`])
    assert.match(forged.stderr, /InvalidSignatureError/)
  })
