import assert from 'node:assert/strict'
import { type Actor, type Answer, actor, type TestService } from './harness.ts'

/** Settings of a service that takes the program `tv`, whatever else it is told. */
export const DEVICE_CLIENTS = { tv: { name: 'Living room', scopes: ['films', 'series'] }, gatehouse: {} }

export type Asked = { readonly deviceCode: string; readonly userCode: string }

/** Codes for a device. */
export async function askForCodes({ anon }: Pick<TestService, 'anon'>, client = 'tv'): Promise<Asked> {
  const { status, body, text } = await anon.post('/api/auth/device/code', { client_id: client })
  assert.equal(status, 200, text)
  return { deviceCode: body.device_code, userCode: body.user_code }
}

export const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:device_code'

export const poll = (
  { anon }: Pick<TestService, 'anon'>,
  { deviceCode }: Pick<Asked, 'deviceCode'>,
  client = 'tv',
): Promise<Answer> =>
  anon.post('/api/auth/device/token', {
    grant_type: GRANT_TYPE,
    device_code: deviceCode,
    client_id: client,
  })

export const approve = (who: Actor, { userCode }: Pick<Asked, 'userCode'>): Promise<Answer> =>
  who.post('/api/auth/device/approve', { userCode })

export const deny = (who: Actor, { userCode }: Pick<Asked, 'userCode'>): Promise<Answer> =>
  who.post('/api/auth/device/deny', { userCode })

/** A caller with a session of a device that the user has approved. */
export async function deviceOf(t: TestService, user: Actor): Promise<Actor & { readonly token: string }> {
  const asked = await askForCodes(t)
  const approved = await approve(user, asked)
  assert.equal(approved.status, 200, approved.text)
  const { status, body, text } = await poll(t, asked)
  assert.equal(status, 200, text)
  return { ...actor(t.url, { authorization: `Bearer ${body.access_token}` }), token: body.access_token }
}
