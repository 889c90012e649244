import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { type Answer, controlDatabase, PASSWORD, type TestService, testService } from '#test/harness.ts'
import { startProxy } from './proxy.ts'

/** `limits.timeout` in milliseconds, from which the deadlines of statements are derived. Readiness checks take at most two seconds. */
const TIMEOUT = 2_500
/** Maximum delay by a silent connection: the statement's timeout, plus the time that the server has to cancel it. */
const DEADLINE = TIMEOUT + 2_000
const WAITING = 20

const proxy = await startProxy(await controlDatabase())
after(() => proxy.close())
const config = {
  database: { max_connections: 4, max_waiting: WAITING },
  auth: { password: { queue: 1_000 } },
}
const t = await testService({
  controlUrl: proxy.url,
  config: { ...config, limits: { timeout: TIMEOUT } },
})
const ada = await t.signUp('Ada')

const signInAt = ({ anon }: TestService) =>
  anon.post('/api/auth/sign-in/email', { email: ada.email, password: PASSWORD })
const signIn = () => signInAt(t)
const ready = () => t.anon.get('/health/ready')

/** The test timeout ends it. */
async function timeUntil(condition: () => Promise<boolean>): Promise<number> {
  const began = performance.now()
  while (!(await condition())) await sleep(20)
  return performance.now() - began
}

const isServed = async () => (await signIn()).status === 200 && (await ready()).status === 200

/** What a recovery needs beside deadlines: a few logins and hashes more than a request of a service that is well. */
async function timeOfRecovery(): Promise<number> {
  await timeUntil(isServed)
  const times: number[] = []
  for (let tries = 0; tries < 3; tries++) times.push(await timeUntil(isServed))
  return 20 * Math.max(...times)
}

const many = <T>(count: number, act: () => Promise<T>) => Promise.all(Array.from({ length: count }, act))
const statuses = (answers: readonly Answer[]) => new Set(answers.map(({ status }) => status))

test('connections that the network has dropped silently delay requests by one deadline, not by 15 minutes', async () => {
  // Open all connections of each kind.
  await many(10, signIn)
  const slack = await timeOfRecovery()
  proxy.forget()
  const took = await timeUntil(isServed)
  assert.ok(took < DEADLINE + 3_000 + slack, `${took} ms, of which ${slack} ms are for the machine`)
})

test('the service is not ready while one kind of connection to the control database is dead, and recovers by itself', async () => {
  const slack = await timeOfRecovery()
  // Each kind is checked separately. None recovers before the last one is dead.
  await reported([
    ['gatehouse pipelined', 'look-ups'],
    ['gatehouse', 'transactions, look-ups'],
  ])
  await reported([['gatehouse listener', 'notifications']])
  const took = await timeUntil(isServed)
  assert.ok(took < DEADLINE + slack, `${took} ms, of which ${slack} ms are for the machine`)
})

/**
 * Drops connections of each name and expects what readiness says then. Tried again when it says more or less: a busy machine does not answer
 * every check within two seconds, and may need so long that a connection recovers.
 */
async function reported(steps: readonly (readonly [name: string, purposes: string])[]): Promise<void> {
  const expected = steps.map(([, purposes]) => [
    503,
    [`The control database cannot be reached for ${purposes}`],
  ])
  const said: unknown[] = []
  for (let tries = 0; tries < 10 && !isDeepStrictEqual(said, expected); tries++) {
    await timeUntil(isServed)
    said.length = 0
    for (const [name] of steps) {
      proxy.forget(name)
      const { status, body } = await ready()
      said.push([status, body.problems])
    }
  }
  assert.deepEqual(said, expected)
}

test('only max_waiting callers wait for a silent database; others get 503 with Retry-After at once', async () => {
  let waited = 0
  let areRefusedFirst = false
  // Tried again when a caller came so late, on a busy machine, that those who waited had their answers already.
  for (let tries = 0; tries < 10 && !(waited === WAITING && areRefusedFirst); tries++) {
    await timeUntil(isServed)
    const { refused, others } = await withoutAnswers(WAITING * 3)
    waited = others.length
    const firstLate = Math.min(...others.map(({ at }) => at))
    areRefusedFirst = refused.every(({ at }) => at < firstLate)
    assert.deepEqual([...statuses(others).difference(new Set([503, 504]))], [])
    for (const { status, headers } of refused)
      assert.deepEqual([status, headers.get('retry-after')], [503, '1'])
  }
  assert.deepEqual({ waited, areRefusedFirst }, { waited: WAITING, areRefusedFirst: true })
  await timeUntil(isServed)
})

/** Answers to callers at once while the database is silent, with their times. */
async function withoutAnswers(callers: number) {
  proxy.freeze()
  try {
    const began = performance.now()
    const answers = await many(callers, async () => ({ ...(await signIn()), at: performance.now() - began }))
    const { refused = [], others = [] } = Object.groupBy(answers, ({ body }) =>
      /too many requests wait/i.test(body.message) ? 'refused' : 'others',
    )
    return { refused, others }
  } finally {
    await proxy.mend()
  }
}

test('connection resets cause only 503, and a slow network only delays', async () => {
  // A busy machine does not answer everybody within a short `limits.timeout`.
  const patient = await testService({
    controlUrl: proxy.url,
    config: { ...config, limits: { timeout: 300_000 } },
  })
  const isServed = async () => (await signInAt(patient)).status === 200
  await timeUntil(isServed)
  const load = many(60, async () => {
    await sleep(Math.random() * 300)
    return signInAt(patient)
  })
  for (let turn = 0; turn < 6; turn++) {
    await sleep(50)
    proxy.reset()
  }
  assert.deepEqual([...statuses(await load).difference(new Set([200, 503]))], [])
  await timeUntil(isServed)
  proxy.slow(40)
  assert.deepEqual([...statuses(await many(4, () => signInAt(patient)))], [200])
  await proxy.mend()
})
