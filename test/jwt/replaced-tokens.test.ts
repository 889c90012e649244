import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actor, PASSWORD, type User } from '#test/harness.ts'
import { codeOf } from '#test/second-factor.ts'
import { createTenants, docsOf, fetchDocs, whoIs } from '#test/tenants.ts'

const { t } = await createTenants()
const AUTH = '/api/auth'

const as = (token: string) => actor(t.url, { 'x-service-client': 'app', authorization: `Bearer ${token}` })

async function confirmTotp(user: User): Promise<string> {
  const { body } = await user.post(`${AUTH}/two-factor/enable`, { password: PASSWORD })
  const secret = new URL(body.totpURI).searchParams.get('secret') ?? ''
  return (await user.post(`${AUTH}/two-factor/verify-totp`, { code: codeOf(t, secret) })).body.token
}

/** Each gives the session another token, because somebody else may have the former one. */
const REPLACING: Readonly<Record<string, (user: User) => Promise<string>>> = {
  reauthenticate: async (user) =>
    (await user.post(`${AUTH}/reauthenticate`, { password: PASSWORD })).body.token,
  'change-password': async (user) =>
    (
      await user.post(`${AUTH}/change-password`, {
        currentPassword: PASSWORD,
        newPassword: 'another good password',
        revokeOtherSessions: true,
      })
    ).body.token,
  'the second factor': confirmTotp,
}

for (const [name, replace] of Object.entries(REPLACING))
  test(`a JWT ends with the session's token: ${name}`, async () => {
    const user = await t.signUp('Eve')
    const stolen: string = (await user.get(`${AUTH}/token`)).body.token
    assert.deepEqual(await docsOf(as(stolen)), [3])
    const token = await replace(user)
    assert.deepEqual(await docsOf(as(token)), [3])
    const { status, body } = await fetchDocs(as(stolen))
    assert.deepEqual([status, body.code], [401, 'invalid_session'])

    const next: string = (await actor(t.url, { authorization: `Bearer ${token}` }).get(`${AUTH}/token`)).body
      .token
    assert.deepEqual((await whoIs(as(next))).claims, (await whoIs(as(token))).claims)
  })
