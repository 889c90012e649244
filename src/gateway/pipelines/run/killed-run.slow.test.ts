import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { testDatabase, withClient } from '#test/database.ts'
import { ADMIN_KEY, actor, controlDatabase, TEST_SECRET } from '#test/harness.ts'
import { createTemporaryHome, startProgram } from '#test/journeys/program.ts'

const ROUNDS = 5
const ROWS = 400_000

/** Each statement of the sink leaves its transaction in `batch`, with the rows that it inserted. */
test('a process that is killed in the middle of a run claims no row that is not stored, and leaves whole batches', async (t) => {
  const home = await createTemporaryHome()
  t.after(home.remove)
  const [own, logging] = [await testDatabase(), await testDatabase()]
  const sql = (url: string, text: string) =>
    withClient(url, async (client) => (await client.query(text)).rows)
  await sql(
    own.url,
    `create view source as select n from generate_series(1, ${ROWS}) n;
    create table sink (n int, batch xid8 default pg_current_xact_id());
    create table batch (id xid8, rows int);
    create function counted() returns trigger language plpgsql as $$ begin
      insert into batch select pg_current_xact_id(), count(*) from fresh; return null; end $$;
    create trigger counted after insert on sink referencing new table as fresh for each statement execute function counted()`,
  )
  const controlUrl = await controlDatabase()
  const env = {
    DATABASE_URL: controlUrl,
    SERVICE_SECRET: TEST_SECRET,
    SERVICE_KEY_12: ADMIN_KEY,
    SERVICE_CLIENTS__DEFAULT__URL: own.url,
    SERVICE_CLIENTS__LOGGING__URL: logging.url,
  }
  const stored = async () => Number((await sql(own.url, 'select count(*) from sink'))[0]?.count)
  const logged = async () =>
    Number(
      (
        await sql(
          logging.url,
          `select coalesce(sum((details ->> 'rows_inserted')::int), 0) as sum from pipeline_step_log where step = 'sink'`,
        )
      )[0]?.sum,
    )

  let answered = 0
  const kills: number[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    const program = await startProgram(home.folder, env)
    const admin = actor(program.url, { apikey: ADMIN_KEY, 'x-service-client': 'default' })
    const before = await stored()
    const running = admin
      .post('/pipelines', { source: { table_name: 'source' }, sink: { table_name: 'sink' } })
      .catch(() => undefined)
    if (round < ROUNDS) {
      while ((await stored()) === before) await sleep(5)
      await sleep(Math.random() * 700)
      const exited = once(program.child, 'exit')
      program.child.kill('SIGKILL')
      await exited
      kills.push((await stored()) - before)
    }
    const answer = await running
    if (answer?.status === 200) answered += answer.body.rows_inserted
    if (round === ROUNDS) {
      assert.equal(answer?.body.rows_inserted, ROWS)
      for (let tries = 0; (await logged()) < ROWS && tries < 100; tries++) await sleep(100)
      await program.end('SIGTERM')
    }
    // A statement of the killed process may still have ended.
    await sleep(200)
    const inSink = await stored()
    assert.ok((await logged()) <= inSink, `the log claims ${await logged()} of ${inSink}`)
    assert.ok(answered <= inSink, `answers claim ${answered} of ${inSink}`)
  }
  const torn = await sql(
    own.url,
    `select from (select batch, count(*)::int as rows from sink group by batch) s full join batch b on b.id = s.batch
     where s.rows is distinct from b.rows`,
  )
  assert.deepEqual(torn, [])
  assert.ok(
    kills.some((rows) => rows > 0 && rows < ROWS),
    `no kill hit the middle: ${kills}`,
  )
  assert.ok((await logged()) >= ROWS, 'the run that was not killed is in the log')
  t.diagnostic(`rows stored by the killed runs: ${kills.join(', ')} of ${ROWS}`)
})
