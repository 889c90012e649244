import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import pg from 'pg'
import { controlDatabase, type TestService, testService, type User } from '#test/harness.ts'

const DAY = 86_400_000
const controlUrl = await controlDatabase()
/** Two services on one database, like two processes. */
const here = await testService({ controlUrl })
const there = await testService({ controlUrl })
const pass = (time: number) => {
  for (const { advance } of [here, there]) advance(time)
}

const get = ({ anon }: TestService, { token }: User) =>
  anon.get('/api/auth/get-session', { headers: { authorization: `Bearer ${token}` } })
const end = async (service: TestService, user: User) =>
  Date.parse((await get(service, user)).body.session.expiresAt)

/** Counts statements on sessions while the work runs. */
async function statements(work: () => Promise<unknown>): Promise<readonly string[]> {
  const query = mock.method(pg.Client.prototype, 'query')
  try {
    await work()
    return query.mock.calls
      .map(({ arguments: [statement] }) =>
        typeof statement === 'string' ? statement : ((statement as { text?: string }).text ?? ''),
      )
      .filter((text) => /\bsession\b/.test(text))
  } finally {
    query.mock.restore()
  }
}

test('a session that one process has extended is valid in another, which was not notified', async () => {
  const ada = await here.signUp('Ada')
  const [mine, theirs] = [await end(here, ada), await end(there, ada)]
  assert.equal(mine, theirs)
  pass(DAY + 1_000)
  const extended = await end(here, ada)
  assert.ok(extended > mine)
  // After the end that the other process has in its cache.
  pass(6 * DAY)
  assert.equal((await get(there, ada)).status, 200)
})

test('of two processes one extends a session, and then both have it in their caches', async () => {
  const ada = await here.signUp('Ada')
  await Promise.all([get(here, ada), get(there, ada)])
  pass(DAY + 1_000)
  assert.equal(await end(here, ada), await end(there, ada))
  const later = await statements(async () => {
    for (const service of [here, there]) assert.equal((await get(service, ada)).status, 200)
  })
  assert.deepEqual(later, [])
})

test('a session that ends while it is extended is refused', async () => {
  const ada = await here.signUp('Ada')
  await get(here, ada)
  pass(DAY + 1_000)
  const { pipelined } = here.service.kernel
  // The row is read again after the extension, and is deleted right before that.
  const query = mock.method(pipelined, 'query', async () => [])
  assert.equal((await get(here, ada)).status, 401)
  query.mock.restore()
})

test('an ended session that is asked for again and again stays refused', async () => {
  const ada = await here.signUp('Ada')
  await get(here, ada)
  pass(8 * DAY)
  for (let round = 0; round < 3; round++) assert.equal((await get(here, ada)).status, 401)
})
