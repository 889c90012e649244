import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { createClient } from '#client/client.ts'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import type { Database } from './types/database.ts'

const t = await testService()
const sql = (text: string) => withClient(t.clientUrl, (client) => client.query(text))
const { apiKey: key } = await t.key(['gateway.read', 'gateway.rpc.execute'])
const db = createClient<Database>({ url: `${t.url}/`, key })
const orders = db.from('orders')

before(() =>
  sql(`
    create type state as enum ('new', 'paid', 'sent');
    create table customers (id int primary key, name text not null, note text, address jsonb);
    create table orders (id int primary key, at timestamptz not null default now(), total numeric, state state not null default 'new',
      tags text[] not null default '{}', customer_id int not null references customers, approver_id int references customers);
    create table lines (order_id int references orders, position int, product text not null, "unit price" int not null,
      primary key (order_id, position));
    create table parts (id int primary key, parent_id int references parts);
    create view totals as select customer_id, sum(total) as total from orders group by customer_id;
    create schema shop;
    create table shop.items (sku text primary key);
    create table odd_names as select n as id, n as "__order_0", n as "key 0" from generate_series(1, 3) n;
    create table numbers as select n as id from generate_series(1, 60) n;
    create function add(a int, b int default 10) returns int language sql as 'select a + b';
    create function now_text() returns text language sql as $$ select 'now' $$;
    create function halves(n int, out half int, out rest int) language sql as 'select n / 2, n % 2';
    create function tick() returns void language sql as '';
    create function large_orders(minimum int) returns table (id int, total numeric) language sql as
      'select id, total from orders where total >= minimum order by id';
    insert into customers values (1, 'Ada', 'a "quoted", (odd) note', '{"city": "Turin"}'), (2, 'Bea', null, null);
    insert into orders select n, timestamptz '2026-01-01' + n * interval '1 second', nullif(n, 3) * 10, (array['new', 'paid', 'sent'])[1 + n % 3]::state,
      array['t' || n % 2], 1 + n % 2, case when n = 5 then 1 end from generate_series(1, 9) n;
    insert into lines select o, p, 'product ' || p, 10 * p from generate_series(1, 3) o, generate_series(1, 2) p;
    insert into parts values (1, null), (2, 1);
    insert into shop.items values ('x1')`),
)

test('columns and relations are chosen by object or by text, with the same rows', async () => {
  const second = { order_id: 3, position: 2 }
  const columns = { product: true, orders: { id: true, customer_id: { name: true } } } as const
  const line = await db.from('lines').select(columns).where(second).single().orThrow()
  assert.deepEqual(line, { product: 'product 2', orders: { id: 3, customer_id: { name: 'Bea' } } })
  const sameLine = db.from('lines').select('product, orders(id, customer_id(name))').where(second)
  assert.deepEqual(await sameLine.single().orThrow(), line)

  const named = {
    sum: 'total',
    buyer: { from: 'customers', hint: 'customer_id', select: { name: true } },
    lines: { 'unit price': true },
  } as const
  const order = await orders.select(named).eq('id', 2).single().orThrow()
  assert.deepEqual(order, {
    sum: 20,
    buyer: { name: 'Ada' },
    lines: [{ 'unit price': 10 }, { 'unit price': 20 }],
  })
  const text = 'sum:total, buyer:customers!customer_id(name), lines("unit price")'
  assert.deepEqual(await orders.select(text).eq('id', 2).single().orThrow(), order)

  const own = await db.from('parts').select('id, above:parent_id(id)').order({ id: 'asc' }).orThrow()
  assert.deepEqual(own, [
    { id: 1, above: null },
    { id: 2, above: { id: 1 } },
  ])
  assert.deepEqual(await db.schema('shop').from('items').select().orThrow(), [{ sku: 'x1' }])
  assert.deepEqual(await db.from('totals').select('total').eq('customer_id', 1).orThrow(), [{ total: 200 }])
})

test('conditions by object and by chain choose the same rows', async () => {
  const ids = async (query: PromiseLike<{ data: readonly { id: number }[] | null; error: unknown }>) => {
    const { data, error } = await query
    assert.equal(error, null, String(error))
    return data?.map(({ id }) => id)
  }
  const id = orders.select('id').order({ id: 'asc' })
  assert.deepEqual(await ids(id.where({ total: { gt: 30, lte: 70 }, state: ['new', 'sent'] })), [5, 6])
  assert.deepEqual(await ids(id.gt('total', 30).lte('total', 70).in('state', ['new', 'sent'])), [5, 6])
  assert.deepEqual(await ids(id.where({ or: [{ total: null }, { id: 1, state: 'paid' }] })), [1, 3])
  assert.deepEqual(await ids(id.or('total.is.null,and(id.eq.1,state.eq.paid)')), [1, 3])
  assert.deepEqual(await ids(id.where({ not: { id: { gt: 1 } } })), [1])
  assert.deepEqual(await ids(id.where({ id: { not: { in: [1, 2, 3, 4, 5, 6] } } })), [7, 8, 9])
  assert.deepEqual(await ids(id.not('id', 'in', [1, 2, 3, 4, 5, 6])), [7, 8, 9])
  assert.deepEqual(await ids(id.is('total', null)), [3])
  assert.deepEqual(await ids(id.eq('total', null)), [3])
  assert.deepEqual(await ids(id.contains('tags', ['t0']).lt('id', 5)), [2, 4])
  assert.deepEqual(await ids(id.where({ at: { gte: new Date('2026-01-01T00:00:08Z') } })), [8, 9])
  const odd = db.from('customers').select('id').where({ note: 'a "quoted", (odd) note' })
  assert.deepEqual(await ids(odd), [1])
  assert.deepEqual(await ids(db.from('customers').select('id').ilike('name', 'AD%').neq('id', 7)), [1])
})

test('a condition without a value is refused before anything is sent, since it would match more rows', () => {
  const user = {} as { readonly id: number } // of a program that trusts its types
  assert.throws(
    () => orders.select('id').where({ customer_id: user.id, state: 'new' }),
    /customer_id is undefined/,
  )
  assert.throws(() => orders.delete().eq('id', user.id), /id is undefined/)
  assert.throws(() => orders.select('id').in('id', [1, user.id]), /id is undefined/)
  assert.throws(() => orders.select('id').where({ id: {} }), /id has no operator/)
  assert.throws(() => orders.select('id').where({ or: [] }), /or has no conditions/)
})

test('a condition of which JSON would drop a part is refused, since it would match more rows', () => {
  const loose = createClient({ url: t.url, key }).from('customers')
  class Owner {
    get id() {
      return 1
    }
  }
  const values: readonly unknown[] = [
    { owner: undefined },
    { owner: [{ id: undefined }] },
    { owner: () => 1 },
    Array(1),
    Number.NaN,
    [Number.NaN],
    new Date(Number.NaN),
    { at: new Date('tomorrow') },
    Symbol('id'),
    () => 1,
    new Map([['owner', 1]]),
    new Set(['a']),
    new Owner(),
    { toJSON: () => undefined },
  ]
  for (const value of values) {
    const given = value as never // of a program that trusts its types
    assert.throws(() => loose.delete().contains('address', given), TypeError)
    assert.throws(() => loose.delete().where({ address: { neq: given } }), TypeError)
    assert.throws(() => loose.delete().not('address', 'eq', given), TypeError)
    assert.throws(() => loose.delete().where({ not: { address: { lt: given } } } as never), TypeError)
  }
  for (const where of [new Map([['id', 1]]), new URLSearchParams('id=1'), new Owner(), [], 'id', null])
    assert.throws(
      () =>
        loose
          .delete()
          .eq('id', 1)
          .where(where as never),
      TypeError,
    )
  // Of another realm, as in a test runner.
  const { request } = loose.select().where(runInNewContext('({ id: { gt: 1, in: [1, 2] } })'))
  assert.equal(request.conditions.length, 2)
})

test('orders, limits, pages and counts', async () => {
  const page = await orders.select('id').order({ state: 'desc', id: 'desc' }).page(2, 4).count()
  assert.deepEqual(
    [page.data, page.count, page.hasMore],
    [[{ id: 4 }, { id: 1 }, { id: 9 }, { id: 6 }], 9, false],
  )
  const nulls = orders.select('id').order({ total: { direction: 'desc', nulls: 'last' } })
  assert.deepEqual(
    (await nulls.range(7, 8).orThrow()).map(({ id }) => id),
    [1, 3],
  )
  assert.deepEqual(await orders.select('id').order('id', { ascending: false }).limit(1).orThrow(), [
    { id: 9 },
  ])
  assert.equal(await orders.count().where({ state: 'paid' }).orThrow(), 3)
  const { data, count } = await orders.select('*', { count: 'exact', head: true })
  assert.deepEqual([data, count], [[], 9])
})

test('single() wants one row, maybeSingle() at most one', async () => {
  assert.deepEqual(await orders.select('id').eq('id', 4).single().orThrow(), { id: 4 })
  assert.equal(await orders.select('id').eq('id', 40).maybeSingle().orThrow(), null)
  const { error: none } = await orders.select('id').eq('id', 40).single()
  assert.deepEqual([none?.code, none?.status], ['not_one_row', 200])
  const { error: several } = await orders.select('id').maybeSingle()
  assert.equal(several?.code, 'not_one_row')
})

test('a builder is a value: each method returns another one, and each await reads again', async () => {
  const base = orders.select('id').order({ id: 'asc' })
  const one = base.eq('id', 1)
  assert.equal((await base.orThrow()).length, 9)
  assert.deepEqual([await one.orThrow(), await one.orThrow()], [[{ id: 1 }], [{ id: 1 }]])
})

test('all() reads every row once in batches, whatever the order, and refuses one that is not unique', async () => {
  const collected = async (rows: AsyncIterable<{ id: number }>) =>
    (await Array.fromAsync(rows)).map(({ id }) => id)
  const ascending = [1, 2, 3, 4, 5, 6, 7, 8, 9]
  assert.deepEqual(await collected(orders.select('id').order({ id: 'asc' }).all({ batch: 2 })), ascending)
  assert.deepEqual(
    await collected(orders.select({ id: true }).order({ id: 'desc' }).all({ batch: 4 })),
    ascending.toReversed(),
  )
  for (const direction of ['asc', 'desc'] as const)
    for (const nulls of [undefined, 'first', 'last'] as const) {
      const total = nulls === undefined ? { direction } : { direction, nulls }
      const query = orders.select('id').order({ approver_id: direction, total, id: 'desc' })
      assert.deepEqual(
        await collected(query.all({ batch: 2 })),
        (await query.orThrow()).map(({ id }) => id),
      )
    }
  const [row] = await Array.fromAsync(
    db.from('lines').select().order({ order_id: 'asc', position: 'desc' }).all({ batch: 3 }),
  )
  assert.deepEqual(row, { order_id: 1, position: 2, product: 'product 2', 'unit price': 20 })
  await assert.rejects(collected(orders.select('id').order({ state: 'asc' }).all()), /no two rows are equal/)
  await assert.rejects(
    collected(orders.select('id').order({ state: 'asc' }).all({ batch: 1 })),
    /no two rows are equal/,
  )
  await assert.rejects(collected(orders.select('id').all()), /needs an order/)
  await assert.rejects(collected(orders.select('id').order({ id: 'asc' }).limit(5).all()), /takes no limit/)
})

test('all() shows every column of the table, whatever its name', async () => {
  const loose = createClient({ url: t.url, key }).from('odd_names')
  for (const query of [loose.select(), loose.select({ __order_0: true, 'key 0': true })]) {
    const all = await Array.fromAsync(query.order({ id: 'asc' }).all({ batch: 2 }))
    assert.deepEqual(all, await query.order({ id: 'asc' }).orThrow())
  }
})

test('all() loses no row while rows come and go', async () => {
  const loose = createClient({ url: t.url, key })
  const seen: unknown[] = []
  for await (const { id } of loose.from('numbers').select('id').order({ id: 'asc' }).all({ batch: 7 })) {
    seen.push(id)
    await sql(`delete from numbers where id = ${Number(id)}; insert into numbers values (${-Number(id)})`)
  }
  assert.deepEqual(
    seen,
    Array.from({ length: 60 }, (_, index) => index + 1),
  )
})

test('refusals arrive as errors with code, status, details and advice', async () => {
  const { data, error, count } = await orders.select('titel')
  assert.deepEqual([data, count, error?.code, error?.status], [null, null, 'unknown_column', 400])
  assert.equal(error?.details.column, 'titel')
  assert.ok(error?.requestId)
  await assert.rejects(orders.select('id').eq('id', 1).limit(100_000).orThrow(), {
    name: 'GatehouseError',
    status: 400,
  })
  const { error: refused } = await createClient<Database>({ url: t.url, key: 'svc_unknown.key' })
    .from('orders')
    .select('id')
  assert.equal(refused?.status, 401)
})

test('the rows of a function, and its value', async () => {
  assert.equal(await db.rpc('add', { a: 1 }).value().orThrow(), 11)
  assert.deepEqual(await db.rpc('add', { a: 1, b: 2 }).orThrow(), [{ add: 3 }])
  assert.equal(await db.rpc('now_text').value().orThrow(), 'now')
  assert.equal(await db.rpc('tick').value().orThrow(), null)
  assert.deepEqual(await db.rpc('halves', { n: 5 }).single().orThrow(), { half: 2, rest: 1 })
  const large = await db
    .rpc('large_orders', { minimum: 40 })
    .select('id')
    .gt('total', 50)
    .order({ id: 'desc' })
    .page(1, 2)
    .count()
  assert.deepEqual([large.data, large.count], [[{ id: 9 }, { id: 8 }], 4])
})
