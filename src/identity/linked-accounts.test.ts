import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Kernel } from '#kernel/kernel.ts'
import { atomically } from '#kernel/kernel.ts'
import { secureRandom, uuidv7 } from '#kernel/random.ts'
import { createSecrets, newSecret } from '#kernel/secrets.ts'
import { TEST_SECRET, testKernel } from '#test/harness.ts'
import { listAccounts } from './accounts.ts'
import { findLinkedAccount, insertLinkedAccount } from './linked-accounts.ts'
import {
  abandonRefresh,
  beginRefresh,
  completeRefresh,
  findProviderTokens,
  isUnchanged,
  updateProviderTokens,
} from './provider-tokens.ts'
import { dropUnreadableTokens, resealProviderTokens } from './reseal-tokens.ts'
import { insertUser } from './users.ts'
import { isLastWayIn } from './ways-in.ts'

const credentials = { client_id: 'id', client_secret: 'secret' }
const kernel = await testKernel({ config: { auth: { social: { providers: { github: credentials } } } } })

async function newUser({ db, now, random }: Kernel) {
  const id = uuidv7(now(), random)
  const fields = { image: null, username: null, displayUsername: null, emailVerified: true, createdAt: now() }
  return insertUser(db, { ...fields, id, name: 'Ada', email: `${id}@example.com` })
}
const github = (accountId: string) => ({ providerId: 'github', accountId })
const rowOf = (id: string) =>
  kernel.db.selectFrom('account').selectAll().where('id', '=', id).executeTakeFirstOrThrow()

test('an account at a provider is linked to one user only, however many ask at once', async () => {
  const users = await Promise.all(Array.from({ length: 8 }, () => newUser(kernel)))
  const added = await Promise.all(users.map(({ id }) => insertLinkedAccount(kernel, id, github('1'), {})))
  const [linked, ...others] = added.filter((account) => account !== undefined)
  assert.ok(linked)
  assert.equal(others.length, 0)
  assert.deepEqual(await findLinkedAccount(kernel, github('1')), { ...linked, settlesAt: null })
  assert.equal(await findLinkedAccount(kernel, { providerId: 'gitlab', accountId: '1' }), undefined)
})

test('the tokens of a provider are sealed for their row, and an update keeps those that it does not name', async () => {
  const user = await newUser(kernel)
  const tokens = {
    accessToken: 'access 1',
    refreshToken: 'refresh 1',
    scopes: ['email'],
    tokenType: 'Bearer',
  }
  const account = await insertLinkedAccount(kernel, user.id, github('2'), tokens)
  assert.ok(account)
  assert.deepEqual(account.scopes, ['email'])
  const before = await rowOf(account.id)
  assert.ok(!JSON.stringify(before).includes('access 1'))
  const opened = (sealed: string | null, owner: string) =>
    kernel.secrets.open('provider-token', sealed ?? '', owner)
  assert.equal(opened(before.sealedAccessToken, account.id), 'access 1')
  assert.equal(opened(before.sealedAccessToken, user.id), undefined)

  assert.equal(await updateProviderTokens(kernel, account.id, { accessToken: 'access 2' }), true)
  const after = await rowOf(account.id)
  assert.equal(opened(after.sealedAccessToken, account.id), 'access 2')
  assert.equal(after.sealedRefreshToken, before.sealedRefreshToken)
  assert.deepEqual([after.scopes, after.tokenType], [['email'], 'Bearer'])
  assert.equal(await updateProviderTokens(kernel, user.id, { accessToken: 'access 3' }), false)
})

test('a password does not count as an account at a provider', async () => {
  const user = await newUser(kernel)
  const password = { providerId: 'credential', accountId: user.id }
  await insertLinkedAccount(kernel, user.id, password, {})
  assert.equal(await findLinkedAccount(kernel, password), undefined)
})

test('the only account is the last way in, and one of two is not', async () => {
  const user = await newUser(kernel)
  const first = await insertLinkedAccount(kernel, user.id, github('3'), {})
  const isLast = () => atomically(kernel, (kernel) => isLastWayIn(kernel, user, first?.id ?? ''))
  assert.equal(await isLast(), true)
  await insertLinkedAccount(kernel, user.id, github('4'), {})
  assert.equal(await isLast(), false)
  assert.equal((await listAccounts(kernel.db, user.id)).length, 2)
  await assert.rejects(isLastWayIn(kernel, user, first?.id ?? ''), /in the transaction/)
})

test('one of many processes refreshes tokens, and only tokens that nothing has replaced meanwhile', async () => {
  const user = await newUser(kernel)
  const tokens = { accessToken: 'access 1', refreshToken: 'refresh 1' }
  const { id } = (await insertLinkedAccount(kernel, user.id, github('5'), tokens)) ?? {}
  const stored = async () => {
    const found = await findProviderTokens(kernel, user.id, id ?? '')
    assert.ok(found)
    return found
  }
  const first = await stored()
  const until = new Date(kernel.now().getTime() + 30_000)
  const begun = await Promise.all(Array.from({ length: 8 }, () => beginRefresh(kernel, first, until)))
  assert.equal(begun.filter(Boolean).length, 1)
  await abandonRefresh(kernel.db, first, new Date(until.getTime() + 1))
  assert.equal(await beginRefresh(kernel, first, until), false, 'that was the turn of another process')
  await abandonRefresh(kernel.db, first, until)
  assert.equal(await beginRefresh(kernel, first, until), true)
  assert.equal(await isUnchanged(kernel.db, first), true)

  await completeRefresh(kernel, first, { accessToken: 'access 2' })
  const second = await stored()
  assert.deepEqual([second.accessToken, second.refreshToken], ['access 2', 'refresh 1'])
  assert.equal(await isUnchanged(kernel.db, first), false)
  assert.equal(await beginRefresh(kernel, first, until), false)
  await completeRefresh(kernel, first, { accessToken: 'access 3' })
  assert.deepEqual(await stored(), second)
})

test('after a rotation of the secret all tokens are sealed again, except while they are refreshed', async () => {
  const user = await newUser(kernel)
  const tokens = { accessToken: 'access', refreshToken: 'refresh', idToken: 'id' }
  const newAccount = async (name: string) =>
    (await insertLinkedAccount(kernel, user.id, github(name), tokens))?.id ?? ''
  const [id, refreshed] = [await newAccount('6'), await newAccount('7')]
  const until = new Date(kernel.now().getTime() + 30_000)
  const { sealedRefreshToken: version } = await rowOf(refreshed)
  assert.equal(await beginRefresh(kernel, { id: refreshed, version }, until), true)

  const secret = newSecret(secureRandom)
  const rotating = { ...kernel, secrets: createSecrets(secret, secureRandom, TEST_SECRET) }
  assert.equal((await findProviderTokens(rotating, user.id, id))?.accessToken, 'access')
  await resealProviderTokens(rotating)
  const rotated = { ...kernel, secrets: createSecrets(secret, secureRandom) }
  assert.partialDeepStrictEqual(await findProviderTokens(rotated, user.id, id), tokens)
  assert.equal((await rowOf(refreshed)).sealedRefreshToken, version)

  assert.equal((await findProviderTokens(rotated, user.id, refreshed))?.accessToken, null)
  await abandonRefresh(kernel.db, { id: refreshed, version }, until)
  await dropUnreadableTokens(kernel.db, rotated.secrets, kernel.now())
  assert.equal((await rowOf(refreshed)).sealedAccessToken, null)
  assert.partialDeepStrictEqual(await findProviderTokens(rotated, user.id, id), tokens)
})
