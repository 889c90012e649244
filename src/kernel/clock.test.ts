import assert from 'node:assert/strict'
import { mock, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { controlDatabase, PASSWORD, testService } from '#test/harness.ts'
import { ClockError, createDatabaseClock } from './clock.ts'

const DAY = 86_400_000

/**
 * Sets the time of every `new Date()` of this process, as on a machine whose clock is wrong, until the end of the test or a call of the
 * returned function. The clock goes on: a mocked one by itself stops, and drifts on a slow machine.
 */
function setMachine(context: TestContext, ahead: number): () => void {
  const [start, began] = [Date.now() + ahead, performance.now()]
  mock.timers.enable({ apis: ['Date'], now: start })
  const ticking = setInterval(() => mock.timers.setTime(Math.round(start + performance.now() - began)), 20)
  const reset = () => {
    clearInterval(ticking)
    mock.timers.reset()
  }
  context.after(reset)
  return reset
}

const unlessServed = { rate_limits: { enabled: true, rules: { sign_in: { requests: 2 } } } }

test('the database’s clock is known as exactly as the fastest answer, and followed when it is set', () => {
  const clock = createDatabaseClock()
  const about = (expected: number, within: number) => {
    const [before, now, after] = [performance.now(), clock.now().getTime(), performance.now()]
    assert.ok(now >= before + expected - within && now <= after + expected + within, `${expected}: ${now}`)
  }
  clock.learn(100, 5_150, 300)
  about(4_950, 101)
  clock.learn(400, 5_401, 402)
  about(5_000, 2)
  // A slow answer is consistent with it.
  clock.learn(500, 6_000, 3_000)
  about(5_000, 2)
  clock.learn(4_000, 1_004_001, 4_002)
  about(1_000_000, 2)
})

test('a change of the machine’s clock ends no session, and rows get the database’s time', async (context) => {
  const t = await testService({ config: unlessServed })
  const { kernel, recurring } = t.service
  const ada = await t.signUp('Ada')
  await t.mails()
  for (const ahead of [8 * DAY, -8 * DAY]) {
    const reset = setMachine(context, ahead)
    for (const task of recurring) await task.run()
    assert.equal((await ada.get('/api/auth/get-session')).status, 200)
    const eve = await t.signUp('Eve')
    await eve.post('/api/auth/forget-password', { email: eve.email })
    await t.key(['orders.read'])
    const mails = await t.mails()
    assert.equal(
      mails.filter((mail) => mail.includes(eve.email)).length,
      1,
      `the queue goes by it too: ${mails.length}`,
    )
    assert.equal(await strayTimes(), '')
    reset()
  }

  async function strayTimes(): Promise<string> {
    const { rows } = await sql<{ stray: string }>`
      select string_agg(found, ' ') as stray from (
        select c.table_name || '.' || c.column_name || ' ' || (xpath('/row/at/text()', query_to_xml(
          format('select max(%1$I) as at from %2$I.%3$I where not %1$I - %4$L::interval between now() - interval ''1 hour'' and now() + interval ''7 days 1 minute''',
            c.column_name, c.table_schema, c.table_name,
            -- Known devices end half a year from now.
            case when c.table_name = 'known_device' and c.column_name = 'expires_at' then '180 days' else '0' end), true, true, '')))[1]::text as found
        from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
        where c.table_schema = 'service' and c.data_type like 'timestamp%' and t.table_type = 'BASE TABLE'
      ) as columns`.execute(kernel.db)
    return rows[0]?.stray ?? ''
  }
})

test('shared rate limits follow the database’s clock, also on a machine with a wrong clock', async (context) => {
  const t = await testService({ config: unlessServed })
  const wrong = () =>
    t.anon.post('/api/auth/sign-in/email', { email: 'nobody@example.com', password: PASSWORD })
  assert.equal((await wrong()).status, 401)
  const reset = setMachine(context, DAY)
  assert.equal((await wrong()).status, 401)
  const { status, headers } = await wrong()
  assert.equal(status, 429)
  assert.ok(Number(headers.get('retry-after')) <= 60)
  reset()
  setMachine(context, -DAY)
  // Without the memory of this process, as in another one.
  const { rows } = await sql<{ left: number }>`
    select expire - extract(epoch from clock_timestamp()) * 1000 as left from service.rate_limit where key like 'sign_in:%'`.execute(
    t.service.kernel.db,
  )
  assert.ok(rows.length > 0 && rows.every(({ left }) => left > 0 && left <= 60_000), JSON.stringify(rows))
})

test('drifting clocks are logged once, and shown in /health until they agree again', async (context) => {
  const t = await testService()
  const drifts = () => t.log.map((line) => JSON.parse(line)).filter(({ event }) => event === 'clock_drift')
  const until = async (count: number) => {
    for (let patience = 0; patience < 1_000 && drifts().length < count; patience++) await sleep(50)
    return drifts()
  }
  const health = async () => (await t.admin.get('/health')).body
  const reset = setMachine(context, -30_000)
  const [first] = await until(1)
  assert.match(
    first?.msg,
    /clock of this machine is (29|30)\.\d s behind that of the control database: synchronise/,
  )
  const { status, components, clock_drift_ms } = await health()
  assert.equal(status, 'degraded')
  assert.ok(Math.abs(clock_drift_ms - 30_000) < 2_000, String(clock_drift_ms))
  assert.match(components.find(({ name }: { name: string }) => name === 'clock')?.message, /NTP/)
  assert.deepEqual((await t.anon.get('/health')).body, { status: 'degraded' })
  assert.match((await t.admin.get('/metrics')).text, /^gatehouse_clock_drift_seconds (29|30)/m)
  reset()
  const lines = await until(2)
  assert.deepEqual(
    lines.map(({ level }) => level),
    ['warn', 'info'],
  )
  assert.equal((await health()).status, 'ok')
})

test('a machine whose clock is wrong by more than a minute does not start, and writes nothing', async (context) => {
  const controlUrl = await controlDatabase()
  for (const [ahead, says] of [
    [90_000, /(89|9\d)\.\d s ahead of/],
    [-3_600_000, /(3599|36\d\d)\.\d s behind/],
  ] as const) {
    const reset = setMachine(context, ahead)
    const refused = await testService({ controlUrl }).catch((error: unknown) => error)
    reset()
    assert.ok(refused instanceof ClockError, String(refused))
    assert.match(refused.message, says)
  }
  const { service } = await testService({ controlUrl })
  const { rows } = await sql`select * from service.process_lease`.execute(service.kernel.db)
  assert.equal(rows.length, 1, 'only the one that serves')
})
