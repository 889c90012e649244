import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAuthClient } from 'better-auth/client'
import { inferAdditionalFields } from 'better-auth/client/plugins'
import { testService } from '#test/harness.ts'
import { CARRIERS, done, newUser, refused } from './clients.ts'
import { createCookieFetch, createPlainFetch } from './fetches.ts'

const t = await testService({
  config: {
    auth: {
      user: {
        fields: {
          company: { required: true },
          age: { type: 'number' },
          born: { type: 'date' },
          tags: { type: 'string[]' },
          tier: { input: false, default: 'bronze' },
        },
      },
    },
  },
})

function newClient(by: (typeof CARRIERS)[number]) {
  let token = ''
  const { fetch: customFetchImpl } = by === 'cookie' ? createCookieFetch() : createPlainFetch()
  const auth = { type: 'Bearer', token: () => token } as const
  const onResponse = ({ response }: { response: Response }) => {
    token = response.headers.get('set-auth-token') ?? token
  }
  return createAuthClient({
    baseURL: t.url,
    fetchOptions: { customFetchImpl, ...(by === 'Bearer' && { auth, onResponse }) },
    plugins: [
      inferAdditionalFields({
        user: {
          company: { type: 'string' },
          age: { type: 'number', required: false },
          born: { type: 'date', required: false },
          tags: { type: 'string[]', required: false },
          tier: { type: 'string', input: false },
        },
      }),
    ],
  })
}

for (const by of CARRIERS) {
  test(`better-auth 1.7.7 by ${by}: sends and reads additional fields by their types`, async () => {
    const client = newClient(by)
    const { email, password, name } = newUser()
    const born = new Date('1815-12-10T00:00:00.000Z')
    const given = { company: 'ACME', age: 36, born, tags: ['a'] }
    const user = done(await client.signUp.email({ email, password, name, ...given }))?.user
    assert.deepEqual([user?.company, user?.age, user?.tags, user?.tier], ['ACME', 36, ['a'], 'bronze'])
    assert.equal(done(await client.updateUser({ company: 'Other', age: null }))?.status, true)
    const known = done(await client.getSession())
    assert.deepEqual(known?.user.born, born)
    assert.deepEqual([known?.user.company, known?.user.age, known?.user.tier], ['Other', null, 'bronze'])

    // The types allow it neither.
    const closed = { tier: 'gold' } as Parameters<typeof client.updateUser>[0]
    const { status, code } = refused(await client.updateUser(closed))
    assert.deepEqual([status, code], [400, 'FIELD_NOT_ALLOWED'])
  })
}
