import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { type Answer, PASSWORD, testService } from '#test/harness.ts'
import { byBearer, operatorOf } from '#test/operators.ts'

/** In every value that is sent, and in none of the answers. */
const MARK = 'marked-value'

const t = await testService({
  config: { auth: { admin: { roles: { metrics: { operator: ['metrics'] } } } } },
})
await withClient(t.clientUrl, (client) =>
  client.query(`create table customer (id int primary key, name text);
    create table orders (id int primary key, customer_id int references customer, status text, total int);
    insert into customer values (1, 'Ada'); insert into orders values (1, 1, 'open', 10), (2, 1, 'paid', 20)`),
)
const operator = byBearer(t, await operatorOf(t, 'metrics'))
const writer = await t.key(['*'])

const activity = async () => (await operator.get('/admin/activity')).body.data
const statements = async (query = ''): Promise<Answer> => operator.get(`/admin/statements${query}`)

type Statement = {
  readonly client: string
  readonly operation: string
  readonly conditions: string
  readonly order: string
  readonly relations: string
  readonly table: string
  readonly count: number
  readonly p50_ms: number
  readonly p95_ms: number
  readonly max_ms: number
  readonly total_ms: number
}

test('requests, sign-ins, failures and jobs are counted in the minute in which they are', async () => {
  const ada = await t.signUp('Ada')
  const before = await activity()
  const signIn = (password: string) => t.anon.post('/api/auth/sign-in/email', { email: ada.email, password })
  assert.equal((await signIn(PASSWORD)).status, 200)
  assert.equal((await signIn('wrong password')).status, 401)
  assert.equal((await writer.post('/gateway/fetch', { table_name: 'missing' })).status, 404)
  await t.anon.post('/api/auth/forget-password', { email: ada.email })
  await t.service.kernel.jobs.start(t.service.handlers, [])
  while ((await activity()).total.jobs.done < 1) await new Promise((resolve) => setTimeout(resolve, 20))
  const after = await activity()
  const [now, then] = [after.total, before.total]
  assert.equal(now.sign_ins.succeeded - then.sign_ins.succeeded, 1)
  assert.equal(now.sign_ins.failed - then.sign_ins.failed, 1)
  assert.equal(now.requests.auth['4xx'] - then.requests.auth['4xx'], 1)
  assert.equal(now.requests.gateway['4xx'] - then.requests.gateway['4xx'], 1)
  assert.ok(now.requests.auth['2xx'] > then.requests.auth['2xx'])
  assert.equal(after.minutes.length, 60)

  t.advance(60 * 60_000)
  const later = await activity()
  assert.deepEqual(later.total.sign_ins, { succeeded: 0, failed: 0 })
})

test('the counters of metrics say the same since the start', async () => {
  const { text } = await t.admin.get('/metrics')
  assert.match(text, /^gatehouse_sign_ins_failed_total 1$/m)
  assert.match(text, /^gatehouse_jobs_done_total [1-9]/m)
})

test('statements are counted by plan: the shape of conditions, order and relations, and no value', async () => {
  const fetch = (body: object) => writer.post('/gateway/fetch', { table_name: 'orders', ...body })
  const status = (value: string) => ({ column: 'status', operator: 'eq', value })
  for (const value of ['open', 'paid', MARK])
    assert.equal((await fetch({ conditions: [status(value)], limit: 7 })).status, 200)
  const any = { or: [status(MARK), { not: { column: 'total', operator: 'in', value: [77_001, 77_002] } }] }
  const related = { columns: 'id,customer(name)', sort_by: [{ field: 'total', direction: 'desc' }] }
  assert.equal((await fetch({ conditions: [any], ...related })).status, 200)
  const row = { id: 3, status: MARK, total: 77_003 }
  const insert = () =>
    writer.send('PUT', '/gateway/insert', { body: { table_name: 'orders', insert_body: row } })
  assert.equal((await insert()).status, 200)
  assert.equal((await insert()).status, 409, 'a statement that fails counts too')
  const { status: done, body, text } = await statements('?sort=count')
  assert.equal(done, 200, text)
  const found = (body.data.statements as Statement[]).filter(({ table }) => table === 'public.orders')
  assert.deepEqual(
    found.map(({ operation, conditions, order, relations, count }) => [
      operation,
      conditions,
      order,
      relations,
      count,
    ]),
    [
      ['fetch', 'status eq', '', '', 3],
      ['insert', '', '', '', 2],
      ['fetch', 'status eq or not (total in)', 'total desc', 'customer', 1],
    ],
  )
  for (const { p50_ms, p95_ms, max_ms, total_ms, count, client } of found) {
    assert.equal(client, 'default')
    assert.ok(0 < p50_ms && p50_ms <= p95_ms && p95_ms <= max_ms && max_ms <= total_ms + 0.01, text)
    assert.ok(total_ms <= max_ms * count + 0.01, text)
  }
  for (const value of [MARK, '77001', '77002', '77003', 'paid']) assert.ok(!text.includes(value), text)
})

test('the list is sorted, limited and of one client where it is asked', async () => {
  const { metrics } = t.service.kernel
  const key = (client: string, conditions: string) =>
    [client, 'fetch', 'public.slow', conditions, '', ''].join('\0')
  for (let count = 0; count < 3; count++) metrics.statements.observe(key('default', 'often eq'), 5_000)
  metrics.statements.observe(key('other', 'seldom eq'), 9_000)
  const first = async (query: string) => {
    const { data } = (await statements(query)).body
    return [data.statements.length, data.statements[0]?.conditions]
  }
  assert.deepEqual(await first('?limit=1'), [1, 'seldom eq'])
  assert.deepEqual(await first('?limit=1&sort=total'), [1, 'often eq'])
  assert.deepEqual(await first('?client_name=other'), [1, 'seldom eq'])
  assert.deepEqual(await first('?client_name=none'), [0, undefined])
  for (const query of ['?sort=table', '?limit=0', '?limit=501', '?lmit=5'])
    assert.equal((await statements(query)).status, 400, query)
})
