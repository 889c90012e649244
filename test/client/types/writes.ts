import { expectTypeOf } from 'expect-type'
import {
  createClient,
  type ErrorCode,
  GatehouseError,
  type Json,
} from '../../../packages/client/src/client.ts'
import type { Database } from './database.ts'

const db = createClient<Database>({ url: 'http://localhost', key: 'svc_', session: async () => 'token' })
const orders = db.from('orders')

export async function writes() {
  expectTypeOf(await orders.insert({ customer_id: 1 }).orThrow()).toEqualTypeOf<null>()
  expectTypeOf(
    await orders
      .insert([{ customer_id: 1 }])
      .select({ id: true })
      .orThrow(),
  ).toEqualTypeOf<{ id: number }[]>()
  expectTypeOf(await orders.insert({ customer_id: 1 }).select('id').single().orThrow()).toEqualTypeOf<{
    id: number
  }>()
  expectTypeOf(
    await orders.upsert({ id: 1, customer_id: 1 }, { onConflict: 'id' }).select('id').orThrow(),
  ).toEqualTypeOf<{ id: number }[]>()
  expectTypeOf(
    await orders.update({ state: 'paid' }).eq('id', 1).where({ state: 'new' }).orThrow(),
  ).toEqualTypeOf<null>()
  expectTypeOf(
    await orders.update({ state: 'paid' }).eq('id', 1).select('state').maybeSingle().orThrow(),
  ).toEqualTypeOf<{
    state: 'new' | 'paid' | 'sent'
  } | null>()
  expectTypeOf(await orders.delete().in('id', [1]).idempotent('key').orThrow()).toEqualTypeOf<null>()
  expectTypeOf(await orders.delete().unbounded().orThrow()).toEqualTypeOf<null>()
}

export const mistakes = () => [
  // @ts-expect-error
  orders.insert({}),
  // @ts-expect-error
  orders.insert({ customer_id: 1, nope: 1 }),
  // @ts-expect-error
  orders.insert([{ customer_id: 'x' }]),
  // @ts-expect-error
  orders.update({ nope: 1 }),
  // @ts-expect-error
  orders.upsert({ customer_id: 1 }, { onConflict: 'nope' }),
  // @ts-expect-error an update of every row is not sent by mistake
  orders.update({ total: 0 }).orThrow(),
  // @ts-expect-error
  orders.delete().orThrow(),
  // @ts-expect-error
  orders.insert({ customer_id: 1 }).eq('id', 1),
  // @ts-expect-error a read has no key
  orders.select('id').idempotent('key'),
  // @ts-expect-error
  db.from('totals').insert({ total: 1 }),
]

export async function functions() {
  expectTypeOf(await db.rpc('add', { a: 1 }).value().orThrow()).toEqualTypeOf<number>()
  expectTypeOf(await db.rpc('add', { a: 1, b: 2 }).orThrow()).toEqualTypeOf<{ add: number }[]>()
  expectTypeOf(await db.rpc('now_text').value().orThrow()).toEqualTypeOf<string>()
  expectTypeOf(await db.rpc('tick').value().orThrow()).toEqualTypeOf<null>()
  expectTypeOf(await db.rpc('halves', { n: 3 }).single().orThrow()).toEqualTypeOf<{
    half: number
    rest: number
  }>()
  const rows = await db
    .rpc('large_orders', { minimum: 5 })
    .gt('total', 7)
    .order({ id: 'desc' })
    .limit(3)
    .orThrow()
  expectTypeOf(rows).toEqualTypeOf<{ id: number; total: number | null }[]>()
  const some = await db.rpc('large_orders', { minimum: 5 }).select('id').orThrow()
  expectTypeOf(some).toEqualTypeOf<{ id: number }[]>()
  const every = await db.rpc('large_orders', { minimum: 5 }).select().orThrow()
  expectTypeOf(every).toEqualTypeOf<{ id: number; total: number | null }[]>()
  const cast = await db.rpc('large_orders', { minimum: 5 }).select('total::numeric, id::int8').orThrow()
  expectTypeOf(cast).toEqualTypeOf<{ total: number | null; id: number }[]>()
  // A row is no value.
  expectTypeOf(db.rpc('halves', { n: 3 }).value().orThrow()).toEqualTypeOf<Promise<never>>()
  // @ts-expect-error
  db.rpc('add')
  // @ts-expect-error
  db.rpc('add', { a: 'x' })
  // @ts-expect-error
  db.rpc('nope')
  // @ts-expect-error a call may write, so it is never repeated
  db.rpc('add', { a: 1 }).idempotent('key')
}

export async function transactions() {
  const done = await db
    .transaction([
      orders.insert({ customer_id: 1 }).select('id').single(),
      orders.update({ state: 'sent' }).eq('id', 2),
      db.from('customers').select({ name: true }),
    ])
    .idempotent('key')
    .orThrow()
  expectTypeOf(done).toEqualTypeOf<[{ id: number }, null, { name: string }[]]>()
  const { signal } = new AbortController()
  // @ts-expect-error a signal is that of the whole transaction
  db.transaction([orders.select('id').signal(signal)])
  // @ts-expect-error also further up the chain
  db.transaction([orders.select('id').timeout(5).eq('id', 1).single()])
  // @ts-expect-error
  db.transaction([orders.insert({ customer_id: 1 }).idempotent('key').select('id')])
  // @ts-expect-error
  db.transaction([orders.delete().eq('id', 1).timeout(5)])
  // @ts-expect-error a call is no step
  db.transaction([db.rpc('add', { a: 1 })])
  expectTypeOf(await db.sql<{ n: number }>('select 1 as n').orThrow()).toEqualTypeOf<{ n: number }[]>()
  expectTypeOf(await db.sql('select 1').orThrow()).toEqualTypeOf<{ [column: string]: Json }[]>()
}

/** The code decides about status and details. */
export async function failures() {
  const { error } = await orders.select('id')
  if (error?.code === 'unique_violation') {
    expectTypeOf(error.status).toEqualTypeOf<409>()
    expectTypeOf(error.details.constraint).toEqualTypeOf<string | undefined>()
  }
  if (error?.code === 'network') expectTypeOf(error.status).toEqualTypeOf<number>()
  if (error?.code === 'timeout') expectTypeOf(error.status).toEqualTypeOf<0 | 504>()
  if (error !== null) expectTypeOf(error.code).toEqualTypeOf<ErrorCode>()
  // @ts-expect-error
  if (error?.code === 'no_such_code') return
  try {
    await orders.select('id').orThrow()
  } catch (caught) {
    if (caught instanceof GatehouseError && caught.code === 'aborted')
      expectTypeOf(caught.status).toEqualTypeOf<0>()
  }
}
