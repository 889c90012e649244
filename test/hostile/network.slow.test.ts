import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, controlDatabase, PASSWORD, testService } from '#test/harness.ts'
import { startProxy } from './proxy.ts'

/** `limits.timeout` in milliseconds, from which the deadlines of statements are derived. Readiness checks take at most two seconds. */
const TIMEOUT = 2_500
/** Maximum delay by a silent connection: the statement's timeout, plus the time that the server has to cancel it. */
const DEADLINE = TIMEOUT + 2_000
const WAITING = 20

const proxy = await startProxy(await controlDatabase())
after(() => proxy.close())
const t = await testService({
  controlUrl: proxy.url,
  config: {
    limits: { timeout: TIMEOUT },
    database: { max_connections: 4, max_waiting: WAITING },
    auth: { password: { queue: 1_000 } },
  },
})
const ada = await t.signUp('Ada')

const signIn = () => t.anon.post('/api/auth/sign-in/email', { email: ada.email, password: PASSWORD })
const ready = () => t.anon.get('/health/ready')

async function timeUntil(condition: () => Promise<boolean>): Promise<number> {
  const began = performance.now()
  while (!(await condition())) {
    assert.ok(performance.now() - began < 20_000, 'the service did not recover')
    await sleep(20)
  }
  return performance.now() - began
}

const isServed = async () => (await signIn()).status === 200 && (await ready()).status === 200
const many = <T>(count: number, act: () => Promise<T>) => Promise.all(Array.from({ length: count }, act))
const statuses = (answers: readonly Answer[]) => new Set(answers.map(({ status }) => status))

test('connections that the network has dropped silently delay requests by one deadline, not by 15 minutes', async () => {
  // Open all connections of each kind.
  await many(10, signIn)
  proxy.forget()
  const took = await timeUntil(isServed)
  assert.ok(took < DEADLINE + 3_000, `${took} ms`)
})

test('the service is not ready while one kind of connection to the control database is dead, and recovers by itself', async () => {
  await timeUntil(isServed)
  // Each kind is checked separately. None recovers before the last one is dead.
  for (const [name, purposes] of [
    ['gatehouse pipelined', 'look-ups'],
    ['gatehouse', 'transactions, look-ups'],
  ] as const) {
    proxy.forget(name)
    const { status, body } = await ready()
    assert.deepEqual(
      [status, body.problems],
      [503, [`The control database cannot be reached for ${purposes}`]],
    )
  }
  await timeUntil(isServed)
  proxy.forget('gatehouse listener')
  assert.deepEqual((await ready()).body.problems, [
    'The control database cannot be reached for notifications',
  ])
  assert.ok((await timeUntil(isServed)) < DEADLINE)
})

test('only max_waiting callers wait for a silent database; others get 503 with Retry-After at once', async () => {
  await timeUntil(isServed)
  proxy.freeze()
  try {
    const began = performance.now()
    const answers = await many(200, async () => ({ ...(await signIn()), at: performance.now() - began }))
    const isRefused = ({ body }: Answer) => /too many requests wait/i.test(body.message)
    const refused = answers.filter(isRefused)
    const firstLate = Math.min(...answers.filter((answer) => !isRefused(answer)).map(({ at }) => at))
    assert.deepEqual([...statuses(answers).difference(new Set([503, 504]))], [])
    assert.equal(answers.length - refused.length, WAITING)
    for (const { at, status, headers } of refused) {
      assert.deepEqual([status, headers.get('retry-after')], [503, '1'])
      assert.ok(at < firstLate, `${at} ms, beside ${firstLate} ms of those who waited`)
    }
  } finally {
    await proxy.mend()
  }
  await timeUntil(isServed)
})

test('connection resets cause only 503, and a slow network only delays', async () => {
  await timeUntil(isServed)
  const load = many(60, async () => {
    await sleep(Math.random() * 300)
    return signIn()
  })
  for (let turn = 0; turn < 6; turn++) {
    await sleep(50)
    proxy.reset()
  }
  assert.deepEqual([...statuses(await load).difference(new Set([200, 503]))], [])
  await timeUntil(isServed)
  proxy.slow(40)
  assert.deepEqual([...statuses(await many(4, signIn))], [200])
  await proxy.mend()
})
