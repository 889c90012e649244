import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient } from '#client/client.ts'

/** Mistakes that types tell, too: of programs without them. Nothing is sent. */
const db = createClient({ url: 'http://localhost', fetch: () => assert.fail('this may not be sent') })
const orders = db.from('orders')
const mistake = (work: () => unknown, message: RegExp) =>
  assert.throws(work, { name: 'TypeError', message }, String(work))

test('no columns are no request for all of them', () => {
  for (const none of [{}, { id: false }, { id: undefined }, null]) {
    mistake(() => orders.select(none as never), /^select has no columns/)
    mistake(() => orders.insert({ id: 1 }).select(none as never), /^select has no columns/)
    mistake(() => db.rpc('f').select(none as never), /^select has no columns/)
    mistake(
      () => orders.select({ customer: none } as never),
      /customer (has no columns|is true)|has no columns/,
    )
  }
})

test('a number that may have been rounded is refused, since it may be that of another row', () => {
  const rounded = [2 ** 53, -(2 ** 53), 2 ** 63, 1e300]
  for (const value of rounded) {
    const says = /^id: .* may have been rounded; pass a bigint$/
    mistake(() => orders.delete().eq('id', value), says)
    mistake(() => orders.delete().in('id', [1, value]), says)
    mistake(() => orders.select().where({ id: value }), says)
    mistake(() => orders.select().where({ id: [value] }), says)
    mistake(() => orders.select().where({ or: [{ id: { gt: value } }] }), says)
    mistake(() => orders.select().not('id', 'eq', value), says)
    mistake(() => orders.upsert([{ id: 1 }, { id: value }], { onConflict: 'id' }), says)
  }
  const exact = [2 ** 53 - 1, 2n ** 53n, '9007199254740993', 0.1, Number.POSITIVE_INFINITY]
  for (const value of exact) orders.select().eq('id', value)
  orders.upsert({ id: 1, large: 2 ** 60 }, { onConflict: 'id' })
})

test('a condition without an operator is no equality', () => {
  mistake(
    () => orders.delete().not('id', undefined as never, 1 as never),
    /^The condition on id has no operator$/,
  )
  mistake(() => orders.delete().not('id', null as never, 1 as never), /no operator/)
})

test('a step of a transaction has no signal, timeout or key of its own, and is no call', () => {
  const { signal } = new AbortController()
  const steps: readonly unknown[] = [
    orders.select('id').signal(signal),
    orders.select('id').timeout(100).eq('id', 1),
    orders.insert({ id: 1 }).idempotent('key'),
    orders.insert({ id: 1 }).timeout(5).select('id').single(),
    orders.delete().eq('id', 1).signal(signal),
    db.rpc('f'),
    orders.count(),
    db.sql('select 1'),
  ]
  for (const step of steps)
    mistake(
      () => db.transaction([orders.insert({ id: 2 }), step as never]),
      /^A step has no signal, timeout or key/,
    )
})

test('single() is for one row, and batches have rows', async () => {
  const two = [{ id: 1 }, { id: 2 }]
  mistake(() => orders.insert(two).select('id').single(), /one row/)
  mistake(() => orders.insert(two).select('id').maybeSingle(), /one row/)
  mistake(() => orders.upsert(two, { onConflict: 'id' }).select('id').single(), /one row/)
  const read = orders.select('id').order({ id: 'asc' })
  const all = (query: Pick<typeof read, 'all'>, batch = 10) => Array.fromAsync(query.all({ batch }))
  for (const batch of [0, -1, Number.NaN])
    await assert.rejects(all(read, batch), { name: 'TypeError', message: /^batch is 1 or more/ })
  await assert.rejects(all(read.single()), /takes no limit, page and single\(\)/)
})
