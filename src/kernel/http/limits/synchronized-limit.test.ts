import { after, test } from 'node:test'
import pg from 'pg'
import { OWN_LOCKS, withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { controlDatabase } from '#test/harness.ts'
import { createSynchronizedLimit } from './synchronized-limit.ts'

const url = await controlDatabase()
const pool = new pg.Pool({ connectionString: url })
after(() => pool.end())

test('two processes that exchange the counts of the same addresses lose none of them', async () => {
  const rule = { requests: 100, window: 600_000 }
  const [one, other] = [
    createSynchronizedLimit('default', rule, pool),
    createSynchronizedLimit('default', rule, pool),
  ]
  const points = async () => {
    const { rows } = await pool.query(
      `select points from service.rate_limit where key in ('default:a', 'default:b') order by key`,
    )
    return rows.map((row) => row.points).join()
  }
  for (const key of ['a', 'b']) await one.consume(key)
  await eventually(async () => (await points()) === '1,1')
  await withClient(url, async (client) => {
    await client.query('begin; select from service.rate_limit for update')
    // In one turn, so that each has both in its next exchange.
    await Promise.all([one.consume('a'), one.consume('b'), other.consume('b'), other.consume('a')])
    const waiting = `select from ${OWN_LOCKS} where not granted`
    await eventually(async () => (await pool.query(waiting)).rowCount === 2)
    await client.query('commit')
  })
  await eventually(async () => (await points()) === '3,3')
  for (const { close } of [one, other]) close()
})
