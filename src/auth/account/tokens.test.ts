import assert from 'node:assert/strict'
import { test } from 'node:test'
import { insertLinkedAccount } from '#identity/linked-accounts.ts'
import { beginRefresh, findProviderTokens, type ProviderTokens } from '#identity/provider-tokens.ts'
import { controlDatabase, testService, type User } from '#test/harness.ts'
import { startTokenServer } from '#test/token-server.ts'

const provider = await startTokenServer()
const other = await startTokenServer()
const config = {
  auth: { social: { providers: { acme: provider.settings, other: other.settings } } },
  outbound: { allow_http: true, allow_networks: ['127.0.0.0/8'] },
  // A provider that hangs would take all of them, if a refresh held one.
  database: { max_connections: 4 },
}
const controlUrl = await controlDatabase()
const t = await testService({ config, controlUrl })
const otherProcess = await testService({ config, controlUrl })
const { kernel } = t.service

let accounts = 0
/** A user with an account at a provider, whose access token has expired. */
async function withAccount(
  more: ProviderTokens = {},
  providerId = 'acme',
  accountId = `account-${++accounts}`,
) {
  const user = await t.signUp('Ada')
  const tokens = {
    accessToken: 'old access',
    refreshToken: `refresh of ${accountId}`,
    accessTokenExpiresAt: new Date(kernel.now().getTime() - 1_000),
    ...more,
  }
  const linked = await insertLinkedAccount(kernel, user.id, { providerId, accountId }, tokens)
  const stored = () => findProviderTokens(kernel, user.id, linked?.id ?? '')
  return { user, accountId, id: linked?.id ?? '', tokens, stored }
}
const get = (user: User, name: object = { providerId: 'acme' }) =>
  user.post('/api/auth/get-access-token', name)
const refresh = (user: User, name: object = { providerId: 'acme' }) =>
  user.post('/api/auth/refresh-token', name)
const sentBy = (server: typeof provider, work: () => Promise<unknown>) => {
  const before = server.refreshes.length
  return work().then(() => server.refreshes.slice(before))
}

test('20 calls at once in two processes send one refresh, and all get the new tokens', async () => {
  const { user, accountId, tokens } = await withAccount()
  const url = '/api/auth/get-access-token'
  const sent = await sentBy(provider, async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        index % 2 === 0
          ? get(user)
          : otherProcess.anon.post(url, { providerId: 'acme' }, { headers: user.headers }),
      ),
    )
    for (const { status, body, text } of answers) {
      assert.equal(status, 200, text)
      assert.partialDeepStrictEqual(body, {
        accessToken: `access after ${tokens.refreshToken}`,
        refreshToken: `${tokens.refreshToken}+`,
        tokenType: 'bearer',
        scopes: ['profile', 'email'],
        providerId: 'acme',
        accountId,
      })
    }
  })
  assert.deepEqual(sent, [tokens.refreshToken])
  assert.deepEqual(await sentBy(provider, () => get(user)), [], 'the new token has not expired')
})

test('refresh-token asks each time, and sends the newest refresh token', async () => {
  const { user, tokens, stored } = await withAccount()
  const first = tokens.refreshToken
  const sent = await sentBy(provider, async () => {
    assert.equal((await refresh(user)).body.refreshToken, `${first}+`)
    assert.equal((await refresh(user)).body.refreshToken, `${first}++`)
  })
  assert.deepEqual(sent, [first, `${first}+`])
  assert.equal((await stored())?.refreshToken, `${first}++`)
})

test('a token that lasts, or that cannot be refreshed, is given out as it is', async () => {
  const lasting = await withAccount({ accessTokenExpiresAt: new Date(kernel.now().getTime() + 60_000) })
  const endless = await withAccount({ accessTokenExpiresAt: null })
  const expired = await withAccount({}, 'other')
  await kernel.db
    .updateTable('account')
    .set({ sealedRefreshToken: null })
    .where('id', '=', expired.id)
    .execute()
  const sent = await sentBy(provider, async () => {
    assert.equal((await get(lasting.user)).body.accessToken, 'old access')
    assert.equal((await get(endless.user)).body.accessToken, 'old access')
    assert.equal((await get(expired.user, { providerId: 'other' })).body.accessToken, 'old access')
  })
  assert.deepEqual(sent, [])
  const refused = await refresh(expired.user, { providerId: 'other' })
  assert.deepEqual([refused.status, refused.body.code], [400, 'REFRESH_TOKEN_NOT_FOUND'])
})

test('an account is named by its provider or its id, and is always the own one', async () => {
  const ada = await withAccount({ accessTokenExpiresAt: null })
  const bob = await withAccount({ accessTokenExpiresAt: null })
  for (const name of [{ accountId: ada.id }, { accountId: ada.accountId }, { providerId: 'acme' }]) {
    const { body } = await get(ada.user, { ...name, userId: bob.user.id })
    assert.deepEqual([body.accountId, body.userId], [ada.accountId, undefined])
  }
  const foreign = [
    { accountId: bob.id },
    { accountId: bob.accountId, userId: bob.user.id },
    { providerId: 'other' },
    { providerId: 'credential' },
    { providerId: 'other', accountId: ada.id },
    {},
  ]
  for (const name of foreign) {
    for (const ask of [get, refresh]) {
      const { status, body } = await ask(ada.user, name)
      assert.deepEqual([status, body.code], [404, 'ACCOUNT_NOT_FOUND'], JSON.stringify(name))
    }
  }
})

test('a refresh that fails keeps the tokens, and the next one may succeed', async () => {
  const { user, tokens, stored } = await withAccount()
  const before = await stored()
  for (const how of ['invalid_grant', 'server_error'] as const) {
    provider.answerWith(how)
    const { status, body } = await get(user)
    assert.deepEqual([status, body.code], [400, 'FAILED_TO_REFRESH_ACCESS_TOKEN'])
    assert.deepEqual(await stored(), before)
  }
  provider.answerWith('tokens')
  assert.equal((await get(user)).body.accessToken, `access after ${tokens.refreshToken}`)
})

test('a session that ends during the refresh gets nothing, and stores nothing', async () => {
  const { user, stored } = await withAccount()
  const before = await stored()
  provider.answerWith('silence')
  const sent = provider.refreshes.length
  const asked = get(user)
  await provider.arrived(sent + 1)
  assert.equal((await user.post('/api/auth/revoke-sessions')).status, 200)
  provider.release()
  const { status, body } = await asked
  assert.deepEqual([status, body.code], [401, 'UNAUTHORIZED'])
  assert.deepEqual(await stored(), before)
})

test('another session that waits for the same refresh gets the tokens', async () => {
  const { user, tokens } = await withAccount()
  const again = await t.anon.post('/api/auth/sign-in/email', {
    email: user.email,
    password: 'correct horse battery',
  })
  const headers = { authorization: `Bearer ${again.body.token}` }
  provider.answerWith('silence')
  const sent = provider.refreshes.length
  const asked = [
    get(user),
    t.anon.post('/api/auth/get-access-token', { providerId: 'acme' }, { headers }),
  ] as const
  await provider.arrived(sent + 1)
  assert.equal((await user.post('/api/auth/sign-out')).status, 200)
  provider.release()
  const [ended, alive] = await Promise.all(asked)
  assert.equal(ended.status, 401)
  assert.equal(alive.body.accessToken, `access after ${tokens.refreshToken}`)
})

test('an account that is unlinked during the refresh is gone', async () => {
  const { user, stored } = await withAccount()
  provider.answerWith('silence')
  const sent = provider.refreshes.length
  const asked = get(user)
  await provider.arrived(sent + 1)
  assert.equal((await user.post('/api/auth/unlink-account', { providerId: 'acme' })).status, 200)
  provider.release()
  const { status, body } = await asked
  assert.deepEqual([status, body.code], [404, 'ACCOUNT_NOT_FOUND'])
  assert.equal(await stored(), undefined)
})

test('a provider that hangs takes no connection to the database, and slows no other provider', async () => {
  const slow = await Promise.all(Array.from({ length: 8 }, () => withAccount()))
  const fast = await withAccount({}, 'other')
  provider.answerWith('silence')
  const sent = provider.refreshes.length
  const asked = slow.map(({ user }) => get(user))
  await provider.arrived(sent + slow.length)
  assert.equal((await get(fast.user, { providerId: 'other' })).status, 200)
  assert.equal((await t.signUp('Eve')).headers.authorization?.startsWith('Bearer'), true)
  provider.release()
  for (const { status } of await Promise.all(asked)) assert.equal(status, 200)
})

test('the refresh of a process that crashed is begun again when its turn is over', async () => {
  const { user, id, stored, tokens } = await withAccount()
  const { version = null } = (await stored()) ?? {}
  await beginRefresh(kernel, { id, version }, new Date(kernel.now().getTime() + 250))
  const [sent, { body }] = await Promise.all([sentBy(provider, () => get(user)), get(user)])
  assert.equal(body.accessToken, `access after ${tokens.refreshToken}`)
  assert.deepEqual(sent, [tokens.refreshToken])
})

test('the refresh of a process that crashed before the clock was set back is begun again at once', async () => {
  const { user, id, stored, tokens } = await withAccount()
  const { version = null } = (await stored()) ?? {}
  await beginRefresh(kernel, { id, version }, new Date(kernel.now().getTime() + 86_400_000))
  const { body, text } = await get(user)
  assert.equal(body.accessToken, `access after ${tokens.refreshToken}`, text)
})

test('tokens of a provider that is not configured any more are given out, but not refreshed', async () => {
  const { user } = await withAccount({ accessTokenExpiresAt: null }, 'former')
  assert.equal((await get(user, { providerId: 'former' })).body.accessToken, 'old access')
  const { status, body } = await refresh(user, { providerId: 'former' })
  assert.deepEqual([status, body.code], [400, 'TOKEN_REFRESH_NOT_SUPPORTED'])
})

test('account-info is what the provider says with the refreshed token', async () => {
  const { user, id, accountId, tokens } = await withAccount({}, 'acme', '4711')
  for (const answer of [
    await user.get(`/api/auth/account-info?accountId=${id}`),
    await user.post('/api/auth/account-info', { accountId }),
  ]) {
    assert.equal(answer.status, 200, answer.text)
    assert.deepEqual(answer.body, {
      user: { id: '4711', name: 'Ada', email: 'ada@example.com', emailVerified: false, image: null },
      data: { id: 4711, name: 'Ada', email: 'ada@example.com', token: `access after ${tokens.refreshToken}` },
      account: { id, providerId: 'acme', accountId },
    })
  }
})

test('a token that cannot be sent closes the provider to nobody', async () => {
  const { user } = await withAccount({ accessToken: 'old access \u0001', accessTokenExpiresAt: null })
  const { status, body } = await user.get('/api/auth/account-info?providerId=acme')
  assert.deepEqual([status, body.code], [400, 'UNABLE_TO_GET_USER_INFO'])
  const sound = await withAccount()
  assert.equal((await get(sound.user)).status, 200)
})

test('account-info is counted, because each one asks the provider', async () => {
  const rate_limits = { enabled: true, rules: { default: { requests: 3, window: 3_600_000 } } }
  const limited = await testService({ config: { ...config, rate_limits } })
  const user = await limited.signUp('Ada')
  const linked = { providerId: 'acme', accountId: '4711' }
  await insertLinkedAccount(limited.service.kernel, user.id, linked, { accessToken: 'old access' })
  const statuses = []
  for (let count = 0; count < 5; count++)
    statuses.push((await user.get('/api/auth/account-info?providerId=acme')).status)
  assert.deepEqual([statuses[0], statuses.at(-1)], [200, 429])
})

test('an account at a provider that is not configured any more is no way in', async () => {
  const { user } = await withAccount({}, 'former')
  const unlink = (providerId: string) => user.post('/api/auth/unlink-account', { providerId })
  const { status, body } = await unlink('credential')
  assert.deepEqual([status, body.code], [400, 'FAILED_TO_UNLINK_LAST_ACCOUNT'])
  assert.equal((await unlink('former')).status, 200)
})

test('no token is in the log', () => {
  for (const process of [t, otherProcess])
    assert.doesNotMatch(process.log.join('\n'), /old access|access after|refresh of/)
})
