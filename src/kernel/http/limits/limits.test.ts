import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '#kernel/errors.ts'
import { eventually } from '#test/embedded.ts'
import { controlDatabase, testKernel } from '#test/harness.ts'
import { deleteExpiredLimits, type RateLimits, type RuleName } from './limits.ts'

const minute = (requests: number) => ({ requests, window: 60_000 })
const rules = {
  sign_in: minute(30),
  sign_up: { requests: 2, window: 1_000 },
  mail: minute(2),
  two_factor: minute(2),
  default: minute(3),
}
const config = { rate_limits: { enabled: true, rules } }
const controlUrl = await controlDatabase()
/** Like two processes on one database. */
const first = await testKernel({ controlUrl, config })
const second = await testKernel({ controlUrl, config })

/** The number of concurrent requests that pass. */
async function passing(
  limits: readonly RateLimits[],
  rule: RuleName,
  key: string,
  count: number,
): Promise<number> {
  const asked = Array.from({ length: count }, (_, index) => limits[index % limits.length]?.allows(rule, key))
  return (await Promise.all(asked)).filter(Boolean).length
}

/** The failure of a request that does not pass. */
async function refusal(limits: RateLimits, rule: RuleName, key: string): Promise<Failure> {
  const failure = await limits.consume(rule, key).then(
    () => undefined,
    (error: unknown) => error,
  )
  assert.ok(failure instanceof Failure, String(failure))
  return failure
}

test('a rule has one bucket for all processes: of a hundred concurrent requests to two processes, exactly the limit passes', async () => {
  assert.equal(await passing([first.limits, second.limits], 'sign_in', '203.0.113.1', 100), 30)
  assert.equal(await passing([first.limits, second.limits], 'sign_in', '203.0.113.1', 10), 0)
})

test('a refusal has the wait in whole seconds', async () => {
  await passing([first.limits], 'mail', '203.0.113.2', 2)
  const { status, code, headers } = await refusal(second.limits, 'mail', '203.0.113.2')
  assert.deepEqual([status, code], [429, 'too_many_requests'])
  const seconds = Number(headers?.['retry-after'])
  assert.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60, `${seconds}`)
  assert.equal(headers?.['x-retry-after'], headers?.['retry-after'])
})

test('after the window the bucket is full again', async () => {
  assert.equal(await passing([first.limits, second.limits], 'sign_up', 'a', 5), 2)
  await sleep(1_100)
  assert.equal(await passing([first.limits, second.limits], 'sign_up', 'a', 5), 2)
})

test('rules and keys do not share a bucket', async () => {
  assert.equal(await passing([first.limits], 'two_factor', 'x', 5), 2)
  assert.equal(await passing([first.limits], 'two_factor', 'y', 5), 2)
  assert.equal(await passing([first.limits], 'mail', 'x', 5), 2)
})

test('an IPv6 address counts as its /64, in any spelling', async () => {
  const same = [
    '2001:db8:1:2::1',
    '2001:DB8:1:2:ffff:ffff:ffff:ffff',
    '2001:0db8:0001:0002:0000:0000:0000:0007',
    '2001:db8:1:2::',
  ]
  for (const [index, address] of same.entries()) {
    assert.equal(await first.limits.allows('two_factor', address), index < 2, address)
  }
  for (const other of ['2001:db8:1:3::1', '2001:db8:1::1', '2001:db8::1:2:0:1', '::1']) {
    assert.equal(await first.limits.allows('two_factor', other), true, other)
  }
})

test('an IPv4 address counts as itself, also in its IPv6 spelling', async () => {
  assert.equal(await passing([first.limits], 'two_factor', '::ffff:198.51.100.1', 5), 2)
  assert.equal(await first.limits.allows('two_factor', '198.51.100.1'), false)
  assert.equal(await first.limits.allows('two_factor', '::ffff:198.51.100.2'), true, 'a neighbour is another')
})

test('the default bucket is counted in each process and synchronized every second', async () => {
  const limits = [first.limits, second.limits]
  assert.equal(await passing(limits, 'default', '203.0.113.9', 10), 6, 'three in each')
  // Two in each: together more than the limit.
  assert.equal(await passing(limits, 'default', '203.0.113.10', 4), 4)
  await sleep(2_500)
  assert.equal(
    await passing(limits, 'default', '203.0.113.10', 4),
    1,
    'the process that synchronized last knows both counts',
  )
})

test('the table contains no address and no email', async () => {
  await first.limits.consume('two_factor', 'ada@example.com')
  const rows = await first.db.selectFrom('rateLimit').selectAll().execute()
  assert.ok(rows.length > 0)
  assert.doesNotMatch(JSON.stringify(rows), /ada|example|203\.0\.113|2001/)
})

test('pruning deletes only buckets whose window is over', async () => {
  const later = new Date(first.now().getTime() + 30_000)
  const count = async () => (await first.db.selectFrom('rateLimit').select('key').execute()).length
  const before = await count()
  // Only those of a window of one second are over.
  const pruned = await deleteExpiredLimits(first.db, later, 1_000)
  assert.equal(pruned, 1)
  assert.equal(await count(), before - 1)
  assert.equal(await first.limits.allows('sign_in', '203.0.113.1'), false)
})

test('pruning leaves a window that begins anew meanwhile', async () => {
  const key = 'mail:anew'
  const expire = String(first.now().getTime() + 60_000)
  await first.db.insertInto('rateLimit').values({ key, points: 1, expire: '1' }).execute()
  const { pruned } = await first.db.transaction().execute(async (db) => {
    await db.updateTable('rateLimit').set({ expire }).where('key', '=', key).execute()
    const pruned = deleteExpiredLimits(second.db, second.now(), 1_000)
    await Promise.race([pruned, sleep(500)])
    // Not awaited here: it might wait for this transaction.
    return { pruned }
  })
  await pruned
  const left = await first.db.selectFrom('rateLimit').select('expire').where('key', '=', key).execute()
  assert.deepEqual(left, [{ expire }])
})

test('a window from before the clock of the database was set back is over', async () => {
  const month = 30 * 86_400_000
  const setBack = (rule: RuleName) =>
    first.db
      .updateTable('rateLimit')
      .set((eb) => ({ expire: eb('expire', '+', String(month)) }))
      .where('key', 'like', `${rule}:%`)
      .execute()
  await passing([first.limits], 'mail', '203.0.113.11', 1)
  await setBack('mail')
  assert.equal(await passing([second.limits], 'mail', '203.0.113.11', 5), 2)
  const { headers } = await refusal(second.limits, 'mail', '203.0.113.11')
  assert.ok(Number(headers?.['retry-after']) <= 60, JSON.stringify(headers))

  const windows = async () => {
    const rows = await first.db
      .selectFrom('rateLimit')
      .selectAll()
      .where('key', 'like', 'default:%')
      .execute()
    return rows.map(({ points, expire }) => ({ points, left: Number(expire) - first.now().getTime() }))
  }
  await first.db.deleteFrom('rateLimit').where('key', 'like', 'default:%').execute()
  await passing([first.limits], 'default', '203.0.113.12', 2)
  // Counts of the tests before may arrive meanwhile, one each.
  await eventually(async () => (await windows()).some(({ points }) => points === 2))
  await setBack('default')
  await passing([second.limits], 'default', '203.0.113.12', 1)
  // The count of the window is not asserted: counts of the tests before may still arrive.
  await eventually(async () => (await windows()).some(({ left }) => left <= 60_000))
})

test('without rate limits every request passes', async () => {
  const off = await testKernel({ controlUrl })
  assert.equal(await passing([off.limits], 'mail', '203.0.113.2', 50), 50)
})
