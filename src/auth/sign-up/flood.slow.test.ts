import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import pg from 'pg'
import { eventually } from '#test/embedded.ts'
import { PASSWORD, testService } from '#test/harness.ts'
import { readiness } from '#test/readiness.ts'

test('of 200 sign-ups with one email at once exactly one succeeds', async () => {
  const t = await testService({ config: { auth: { password: { queue: 256 } } } })
  const emitted: string[] = []
  t.service.kernel.events.subscribe((name) => void emitted.push(name))
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, index) =>
      t.anon.post('/api/auth/sign-up/email', {
        name: `Ada ${index}`,
        email: index % 2 === 0 ? 'ada@example.com' : 'ADA@example.com ',
        password: PASSWORD,
      }),
    ),
  )
  const statuses = answers.map(({ status }) => status)
  assert.deepEqual(statuses.toSorted(), [200, ...Array(199).fill(409)])
  const winner = answers.find(({ status }) => status === 200)
  const rows = await t.service.kernel.db.selectFrom('user').select(['id', 'name']).execute()
  assert.deepEqual(rows, [{ id: winner?.body.user.id, name: winner?.body.user.name }])
  for (const table of ['session', 'account'] as const) {
    const { length } = await t.service.kernel.db.selectFrom(table).select('id').execute()
    assert.equal(length, 1, table)
  }
  assert.deepEqual(emitted, ['auth_user_created', 'auth_user_signed_in'])
})

test('of many sign-ups with one username at once exactly one gets it', async () => {
  const t = await testService()
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, index) =>
      t.anon.post('/api/auth/sign-up/email', {
        name: 'Ada',
        email: `ada-${index}@example.com`,
        password: PASSWORD,
        username: index % 2 === 0 ? 'ada' : 'ADA',
      }),
    ),
  )
  const codes = answers.map(({ body }) => body.code ?? 'ok').toSorted()
  assert.deepEqual(codes, [...Array(49).fill('USERNAME_IS_ALREADY_TAKEN'), 'ok'])
})

test('past the bound of the queue the answer is 503 with Retry-After, and get-session is still answered', async () => {
  const t = await testService({ config: { auth: { password: { queue: 4, concurrency: 1 } } } })
  const ada = await t.signUp('Ada')
  const { hashQueue } = t.service.kernel
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  const first = hashQueue(() => held)
  const signIn = () => t.anon.post('/api/auth/sign-in/email', { email: ada.email, password: PASSWORD })
  const waiting = Array.from({ length: 4 }, signIn)
  await eventually(() => hashQueue.depth() === 4)
  const refused = await signIn()
  assert.deepEqual([refused.status, refused.body.code], [503, 'SERVICE_UNAVAILABLE'])
  assert.match(refused.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  assert.equal((await ada.get('/api/auth/get-session')).status, 200)
  assert.equal((await readiness(t.anon)).status, 200)
  assert.equal(hashQueue.depth(), 4, 'they still wait')

  release()
  await first
  const statuses = (await Promise.all(waiting)).map(({ status }) => status)
  assert.deepEqual(statuses, [200, 200, 200, 200])
  const { text } = await t.admin.get('/metrics')
  assert.match(text, /^gatehouse_password_queue_full_total 1$/m)
})

test('while the queue of hashes is full, sign-ins and sign-ups are refused without a statement, and do not use up their limits', async () => {
  const t = await testService({
    config: {
      auth: { password: { queue: 0, concurrency: 1 } },
      rate_limits: { enabled: true, rules: { sign_in: { requests: 2 }, sign_up: { requests: 2 } } },
    },
  })
  const ada = await t.signUp('Ada')
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  const hashing = t.service.kernel.hashQueue(() => held)
  const signIn = () => t.anon.post('/api/auth/sign-in/email', { email: ada.email, password: PASSWORD })
  const query = mock.method(pg.Client.prototype, 'query')
  for (let attempt = 0; attempt < 3; attempt++) {
    assert.equal((await signIn()).status, 503)
    const form = { name: 'Bob', email: 'bob@example.com', password: PASSWORD }
    assert.equal((await t.anon.post('/api/auth/sign-up/email', form)).status, 503)
  }
  const statements = query.mock.calls.map(({ arguments: [statement] }) => JSON.stringify(statement))
  query.mock.restore()
  assert.deepEqual(
    statements.filter((text) => /rate_limit|"user"/.test(text)),
    [],
  )
  release()
  await hashing
  assert.equal((await signIn()).status, 200)
})
