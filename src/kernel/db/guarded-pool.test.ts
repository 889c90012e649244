import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { testDatabase } from '#test/database.ts'
import { startProxy } from '#test/hostile/proxy.ts'
import { createAlarm } from './connection-alarm.ts'
import { createPool } from './guarded-pool.ts'

test('an alarm ends idle connections and those silent for long, and keeps those with a recent statement', async () => {
  const way = await startProxy((await testDatabase()).url)
  const alarm = createAlarm()
  const pool = createPool({
    url: way.url,
    name: 'test',
    max: 3,
    maxWaiting: 10,
    statementTimeout: 30_000,
    onError: () => {},
    alarm,
  })
  const forgotten = await pool.connect()
  way.forget()
  const unanswered = assert.rejects(forgotten.query('select 1'), /terminated/)
  const [idle, slow] = await Promise.all([pool.connect(), pool.connect()])
  idle.release()
  await sleep(2_100)
  let isAnswered = false
  const answered = slow.query('select pg_sleep(1)').then(() => {
    isAnswered = true
  })
  alarm.raise()
  assert.equal(pool.idleCount, 0)
  await unanswered
  assert.equal(isAnswered, false, 'at once')
  await answered
  for (const client of [forgotten, slow]) client.release()
  await pool.end()
  await way.close()
})
