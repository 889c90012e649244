import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createAuthClient } from 'better-auth/client'
import { createAuthClient as createAuthClient12 } from 'better-auth-1.2/client'
import { PASSWORD, testClock, testService } from '#test/harness.ts'
import { done, newUser, type Outcome, refused, VERSIONS, type Version } from './clients.ts'
import { createCookieFetch } from './fetches.ts'

const t = await testService({ clock: testClock({ isStopped: true }) })
const MINUTE = 60_000

type Calls = {
  readonly signUp: { email(body: ReturnType<typeof newUser>): Promise<Outcome<{ user: { id: string } }>> }
  unlinkAccount(body: { providerId: string; accountId: string }): Promise<Outcome<{ status: boolean }>>
}

const clientOf = (version: Version): Calls => {
  const { fetch: customFetchImpl } = createCookieFetch()
  const options = { baseURL: t.url, fetchOptions: { customFetchImpl } }
  return version === '1.7.7' ? createAuthClient(options) : createAuthClient12(options)
}

type WithProof = (
  auth: Calls,
  act: () => Promise<Outcome<{ status: boolean }>>,
  ask: (accepts: readonly string[]) => object,
) => Promise<Outcome<{ status: boolean }>>

/** The lines that the guide gives to applications. */
const guide = readFileSync(new URL('../../docs/guides/better-auth.md', import.meta.url), 'utf8')
const lines = /```js\n(async function withProof.*?)```/s.exec(guide)?.[1] ?? ''
const withProof: WithProof = new Function(`return ${lines}`)()

for (const version of VERSIONS)
  test(`better-auth ${version}: the guide's lines show a proof where one is demanded, and act again`, async () => {
    const client = clientOf(version)
    const { user } = done(await client.signUp.email(newUser()))
    t.advance(11 * MINUTE)
    const unlink = () => client.unlinkAccount({ providerId: 'credential', accountId: user.id })
    const demanded = refused(await unlink())
    assert.deepEqual([demanded.status, demanded.code], [403, 'SESSION_NOT_FRESH'])
    const asked: (readonly string[])[] = []
    const shown = await withProof(client, unlink, (accepts) => {
      asked.push(accepts)
      return { password: PASSWORD }
    })
    assert.deepEqual(asked, [['password']])
    // The demand is met, and the password is the last way in.
    assert.equal(refused(shown).code, 'FAILED_TO_UNLINK_LAST_ACCOUNT')

    t.advance(11 * MINUTE)
    const wrong = await withProof(client, unlink, () => ({ password: 'wrong password' }))
    assert.equal(refused(wrong).code, 'INVALID_PASSWORD')
  })
