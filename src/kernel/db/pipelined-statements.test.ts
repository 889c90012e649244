import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { testDatabase } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { createAlarm } from './connection-alarm.ts'
import { createPipelinedStatements, preparedStatement } from './pipelined-statements.ts'

const { url } = await testDatabase()
const other = new pg.Client({ connectionString: url })
await other.connect()
after(() => other.end())

const pipelineOn = (address: string, count: number, statementTimeout: number) =>
  createPipelinedStatements({
    url: address,
    count,
    statementTimeout,
    maxWaiting: 1_000,
    alarm: createAlarm(),
  })

const DOUBLE = preparedStatement<{ value: number }>('select $1::int * 2 as value')
const BROKEN = preparedStatement<{ value: number }>('select 1 / $1::int as value')

const connections = async () =>
  (
    await other.query(
      `select pid from pg_stat_activity where application_name = 'gatehouse pipelined' and datname = current_database()`,
    )
  ).rowCount
/** Resolves once the sessions have ended. */
const terminate = () =>
  other.query(
    `select pg_terminate_backend(pid, 10000) from pg_stat_activity where application_name = 'gatehouse pipelined' and datname = current_database()`,
  )

test('many concurrent statements share few connections, and each gets its own result', async () => {
  const pipelined = pipelineOn(url, 2, 5_000)
  const answers = await Promise.all(
    Array.from({ length: 500 }, (_, index) => pipelined.query(DOUBLE, [index])),
  )
  assert.deepEqual(
    answers.map(([row]) => row?.value),
    Array.from({ length: 500 }, (_, index) => index * 2),
  )
  assert.equal(await connections(), 2)
  await pipelined.close()
})

test('a failed statement does not affect the others', async () => {
  const pipelined = pipelineOn(url, 1, 5_000)
  const asked = Array.from({ length: 60 }, (_, index) =>
    pipelined.query(index % 3 === 0 ? BROKEN : DOUBLE, [index % 3 === 0 ? 0 : index]),
  )
  const answers = await Promise.allSettled(asked)
  for (const [index, answer] of answers.entries()) {
    if (index % 3 === 0) assert.equal(answer.status === 'rejected' && answer.reason.code, '22012')
    else assert.deepEqual(answer.status === 'fulfilled' && answer.value, [{ value: index * 2 }])
  }
  await pipelined.close()
})

test('connections that the server ends are replaced, one for one', async () => {
  const pipelined = pipelineOn(url, 2, 5_000)
  for (let round = 0; round < 5; round++) {
    await pipelined.query(DOUBLE, [1])
    await pipelined.query(DOUBLE, [2])
    const killed = terminate()
    // Statements while the connections break: each gets a result or an error.
    const during = Array.from({ length: 30 }, async (_, index) => {
      await sleep(index / 3)
      return pipelined.query(DOUBLE, [index])
    })
    await Promise.allSettled([killed, ...during])
    await sleep(20)
    assert.deepEqual(await pipelined.query(DOUBLE, [21]), [{ value: 42 }])
    assert.deepEqual(await pipelined.query(DOUBLE, [4]), [{ value: 8 }])
  }
  // The server lists a connection a moment longer than it is open.
  await eventually(async () => (await connections()) === 2)
  await pipelined.close()
  await eventually(async () => (await connections()) === 0)
})

test('a value that cannot be sent leaves its statement to the values of others', async () => {
  const pipelined = pipelineOn(url, 1, 5_000)
  const same = preparedStatement<{ value: object }>('select $1::jsonb as value')
  for (let round = 0; round < 2; round++) {
    const unsent = pipelined.query(same, [{ big: 1n }])
    const sent = pipelined.query(same, [{ round }])
    await assert.rejects(unsent, TypeError)
    assert.deepEqual(await sent, [{ value: { round } }])
  }
  await pipelined.close()
})

test('an unavailable database is an error at once', async () => {
  const nowhere = pipelineOn('postgres://nobody@127.0.0.1:1/none', 2, 5_000)
  for (let round = 0; round < 3; round++)
    await assert.rejects(nowhere.query(DOUBLE, [1]), { code: 'ECONNREFUSED' })
  await nowhere.close()
})

test('the database cancels a statement that takes too long', async () => {
  const pipelined = pipelineOn(url, 1, 500)
  await assert.rejects(pipelined.query(preparedStatement<{ pg_sleep: string }>('select pg_sleep(5)'), []), {
    code: '57014',
  })
  assert.deepEqual(await pipelined.query(DOUBLE, [1]), [{ value: 2 }])
  await pipelined.close()
})
