import assert from 'node:assert/strict'
import { type JwtKeyState, listJwtKeys } from '#identity/jwt/key-store.ts'
import { keepJwtKeys, retireJwtKey, rotateJwtKeys } from '#identity/jwt/keys.ts'
import { CLI } from '#kernel/audit/origin.ts'
import { withOrigin } from '#kernel/kernel.ts'
import type { TestService } from '#test/harness.ts'

/** Causes of the acts on the keys of tokens. */
export function jwtKeyCauses(service: () => TestService) {
  const kernel = () => withOrigin(service().service.kernel, CLI)
  const idOf = async (state: JwtKeyState): Promise<string> => {
    await keepJwtKeys(kernel())
    const key = (await listJwtKeys(kernel().db)).find((each) => each.state === state)
    assert.ok(key, state)
    return key.id
  }
  const retireStandby = async () => {
    const targetId = await idOf('standby')
    await retireJwtKey(kernel(), targetId)
    return { actorId: 'cli', targetId }
  }
  return {
    'jwt_key.created': async () => {
      await retireStandby()
      return { actorId: 'cli', targetId: await idOf('standby') }
    },
    'jwt_key.rotated': async () => {
      const targetId = await idOf('standby')
      await rotateJwtKeys(kernel(), { atOnce: true })
      return { actorId: 'cli', targetId }
    },
    'jwt_key.retired': retireStandby,
  }
}
