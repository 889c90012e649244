import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import type { Batch } from '#databases/drivers/changes.ts'
import { feedDatabase, feedOn } from '#test/changes.ts'
import { type Chooser, chooser } from '#test/chooser.ts'

const { url, sql, session } = await feedDatabase()
const { feed, live } = feedOn(url)
await sql('create table orders (id int primary key, value int); create index on orders (value)')
await live('orders')

const WRITERS = 5
const TRANSACTIONS = 30
const KEYS = 40

type Pick = Chooser['below']

const STATEMENTS: readonly ((pick: Pick) => string)[] = [
  (pick) => `insert into orders values (${pick(KEYS)}, ${pick(1_000)}) on conflict do nothing`,
  (pick) =>
    `insert into orders values (${pick(KEYS)}, 1) on conflict (id) do update set value = orders.value + 1`,
  (pick) =>
    `insert into orders select n, ${pick(100)} from generate_series(${pick(KEYS)}, ${pick(KEYS)}) n on conflict do nothing`,
  (pick) => `update orders set value = value + 1 where id = ${pick(KEYS)}`,
  (pick) => `update orders set value = ${pick(1_000)} where id % 7 = ${pick(7)}`,
  (pick) => `update orders set id = ${pick(KEYS)} where id = ${pick(KEYS)}`,
  (pick) => `delete from orders where id = ${pick(KEYS)}`,
  (pick) => `delete from orders where value % 5 = ${pick(5)}`,
  (pick) =>
    `with gone as (delete from orders where id = ${pick(KEYS)} returning value) insert into orders select ${pick(KEYS)}, value from gone`,
]

function transactionOf(pick: Pick): readonly string[] {
  if (pick(40) === 0) return ['truncate orders']
  if (pick(4) === 0) return [statementOf(pick)]
  const middle = Array.from({ length: 1 + pick(3) }, () => {
    if (pick(4) > 0) return [statementOf(pick)]
    return ['savepoint s', statementOf(pick), pick(2) === 0 ? 'rollback to s' : 'release s']
  })
  return ['begin', ...middle.flat(), pick(4) === 0 ? 'rollback' : 'commit']
}
const statementOf = (pick: Pick): string => STATEMENTS[pick(STATEMENTS.length)]?.(pick) ?? 'select'

/** Duplicate keys and deadlocks roll a transaction back, as those of other writers. */
async function write(seed: number): Promise<void> {
  const pick = chooser(seed).below
  const writer = await session()
  for (let count = 0; count < TRANSACTIONS; count++)
    try {
      for (const statement of transactionOf(pick)) await writer.run(statement)
    } catch {
      await writer.run('rollback')
    }
  await writer.end()
}

type Rows = Map<string, number>
const fetch = async (where = ''): Promise<Rows> =>
  new Map((await sql(`select id, value from orders ${where}`)).map(({ id, value }) => [String(id), value]))

/** As a subscriber does: rows whose keys were told are read again. */
async function apply(rows: Rows, { tables }: Batch): Promise<Rows> {
  let next = rows
  for (const change of tables) {
    if ('reset' in change) {
      next = await fetch()
      continue
    }
    const keys = change.keys.map(({ key }) => key.values.join())
    const found = await fetch(`where id in (${keys.join()})`)
    for (const key of keys) next.delete(key)
    for (const [key, value] of found) next.set(key, value)
  }
  return next
}

for (let round = 0; round < 3; round++) {
  const seed = randomInt(2 ** 31)
  test(`a reader that applies what is told has the rows of the table (seed ${seed})`, async () => {
    let position = await feed.position()
    let rows = await fetch()
    let isWriting = true
    const writing = Promise.all(Array.from({ length: WRITERS }, (_, index) => write(seed + index))).finally(
      () => {
        isWriting = false
      },
    )
    for (let isLast = false; !isLast; ) {
      isLast = !isWriting
      const batch = await feed.read(position)
      assert('position' in batch, JSON.stringify(batch))
      rows = await apply(rows, batch)
      position = batch.position
    }
    await writing
    assert.deepEqual([...rows].toSorted(), [...(await fetch())].toSorted())
  })
}
