import { expectTypeOf } from 'expect-type'
import { createClient, type Json, type SelectError } from '../../../packages/client/src/client.ts'
import type { Database } from './database.ts'

const db = createClient<Database>({ url: 'http://localhost' })
type Order = Database['public']['Tables']['orders']['Row']
const [orders, lines, customers, parts] = [
  db.from('orders'),
  db.from('lines'),
  db.from('customers'),
  db.from('parts'),
] as const

export async function byObject() {
  const plain = await orders.select({ id: true, total: true }).orThrow()
  expectTypeOf(plain).toEqualTypeOf<{ id: number; total: number | null }[]>()

  const related = await lines.select({ product: true, orders: { id: true, state: true } }).orThrow()
  expectTypeOf(related).toEqualTypeOf<
    { product: string; orders: { id: number; state: 'new' | 'paid' | 'sent' } }[]
  >()

  const byColumn = await orders
    .select({ id: true, customer_id: { name: true }, approver_id: { name: true } })
    .orThrow()
  expectTypeOf(byColumn).toEqualTypeOf<
    { id: number; customer_id: { name: string }; approver_id: { name: string } | null }[]
  >()

  const named = await orders
    .select({ sum: 'total', buyer: { from: 'customers', hint: 'customer_id', select: { name: true } } })
    .orThrow()
  expectTypeOf(named).toEqualTypeOf<{ sum: number | null; buyer: { name: string } }[]>()

  const many = await orders
    .select({ '*': true, lines: { product: true, 'unit price': true } })
    .single()
    .orThrow()
  expectTypeOf(many).toEqualTypeOf<Flat<Order & { lines: { product: string; 'unit price': number }[] }>>()

  const deep = await customers
    .select({
      orders: { from: 'orders', hint: 'customer_id', select: { id: true, lines: { position: true } } },
    })
    .orThrow()
  expectTypeOf(deep).toEqualTypeOf<{ orders: { id: number; lines: { position: number }[] }[] }[]>()

  const chosen = await orders.select({ id: true, total: false }).orThrow()
  expectTypeOf(chosen).toEqualTypeOf<{ id: number }[]>()

  const withTotal: boolean = Math.random() < 0.5
  const perhaps = await orders.select({ id: true, total: withTotal, at: withTotal }).orThrow()
  expectTypeOf(perhaps).toEqualTypeOf<
    { id: number; total: number | null | undefined; at: string | undefined }[]
  >()

  // Its policies may hide the account.
  const hidden = await db
    .from('entries')
    .select({ accounts: { id: true } })
    .orThrow()
  expectTypeOf(hidden).toEqualTypeOf<{ accounts: { id: number } | null }[]>()
}

type Flat<T> = { [K in keyof T]: T[K] }

export async function byText() {
  const all = await orders.select().orThrow()
  expectTypeOf(all).toEqualTypeOf<Order[]>()
  expectTypeOf(await orders.select('*').orThrow()).toEqualTypeOf<Order[]>()

  const plain = await orders.select('id, sum:total, at as moment, note:state::text').orThrow()
  expectTypeOf(plain).toEqualTypeOf<{ id: number; sum: number | null; moment: string; note: string }[]>()

  const cast = await orders.select('total::text, id::text').orThrow()
  expectTypeOf(cast).toEqualTypeOf<{ total: string | null; id: string }[]>()
  const casts = await orders
    .select(
      'i:id::bigint, n:total::numeric, f:total::float4, b:id::bool, j:tags::jsonb, a:id::int8[], x:at::interval',
    )
    .orThrow()
  expectTypeOf(casts).toEqualTypeOf<
    {
      i: number
      n: number | null
      f: number | null
      b: boolean
      j: Json
      a: (number | null)[]
      x: string
    }[]
  >()

  const related = await lines
    .select('product, order:orders ( id, buyer:customers!orders_customer_id_fkey(name) )')
    .orThrow()
  expectTypeOf(related).toEqualTypeOf<{ product: string; order: { id: number; buyer: { name: string } } }[]>()

  const many = await orders
    .select(`
    id,
    lines(position, "unit price"),
    approver_id(name)
  `)
    .orThrow()
  expectTypeOf(many).toEqualTypeOf<
    {
      id: number
      lines: { position: number; 'unit price': number }[]
      approver_id: { name: string } | null
    }[]
  >()

  const own = await parts.select('id, above:parent_id(id)').orThrow()
  expectTypeOf(own).toEqualTypeOf<{ id: number; above: { id: number } | null }[]>()

  const view = await db.from('totals').select('total').orThrow()
  expectTypeOf(view).toEqualTypeOf<{ total: number | null }[]>()

  const other = await db.schema('shop').from('items').select('sku').orThrow()
  expectTypeOf(other).toEqualTypeOf<{ sku: string }[]>()

  const unknown: string = 'id'
  expectTypeOf(await customers.select(unknown).orThrow()).toEqualTypeOf<
    { id?: number; name?: string; note?: string | null; address?: Json | null }[]
  >()
}

type ExactDatabase = {
  public: {
    Tables: {
      sums: {
        Row: { id: number | bigint; note: string | null }
        Insert: Record<never, never>
        Update: Record<never, never>
        Relationships: []
      }
    }
    Views: Record<never, never>
    Functions: { f: { Args: never; Returns: { id: number | bigint }[] } }
    Numbers: 'exact'
  }
}

export async function exactNumbers() {
  const exact = createClient<ExactDatabase>({ url: 'http://localhost', numbers: 'exact' })
  const casts = await exact
    .from('sums')
    .select('note::int8, n:id::numeric, s:id::int4, l:id::int8[]')
    .orThrow()
  expectTypeOf(casts).toEqualTypeOf<
    { note: number | bigint | null; n: number | bigint | string; s: number; l: (number | bigint | null)[] }[]
  >()
  const called = await exact.rpc('f').select('id, n:id::numeric').orThrow()
  expectTypeOf(called).toEqualTypeOf<{ id: number | bigint; n: number | bigint | string }[]>()
}

/** A sentence says why there are no rows; they are never any. */
export async function errors() {
  const column = await orders.select('id, nope').orThrow()
  expectTypeOf(column).toEqualTypeOf<SelectError<'orders has no column "nope"'>[]>()
  const member = await orders.select({ id: true, nope: true }).orThrow()
  expectTypeOf(member).toEqualTypeOf<SelectError<'orders has no column "nope"'>[]>()
  const inner = await lines.select({ orders: { nope: true } }).orThrow()
  expectTypeOf(inner).toEqualTypeOf<SelectError<'orders has no column "nope"'>[]>()
  const relation = await lines.select('customers(name)').orThrow()
  expectTypeOf(relation).toEqualTypeOf<SelectError<'lines has no relation "customers"'>[]>()
  const several = await orders.select('customers(name)').orThrow()
  expectTypeOf(several).toEqualTypeOf<
    SelectError<'orders has several relations to "customers": write "customers!key(…)", or the column of the key'>[]
  >()
  const self = await parts.select('parts(id)').orThrow()
  expectTypeOf(self).toEqualTypeOf<
    SelectError<'parts has several relations to "parts": write "parts!key(…)", or the column of the key'>[]
  >()
  const open = await orders.select('id, lines(product').orThrow()
  expectTypeOf(open).toEqualTypeOf<SelectError<'A ")" is missing'>[]>()
  const closed = await orders.select('id)').orThrow()
  expectTypeOf(closed).toEqualTypeOf<SelectError<'There is one ")" too many'>[]>()
  for (const none of [await orders.select({}).orThrow(), await orders.select({ id: false }).orThrow()])
    expectTypeOf(none).toEqualTypeOf<SelectError<'No columns are selected'>[]>()
  const empty = await orders.select('id,').orThrow()
  expectTypeOf(empty).toEqualTypeOf<SelectError<'A column is missing'>[]>()
  const joined = await lines.select('orders!inner(id)').orThrow()
  expectTypeOf(joined).toEqualTypeOf<SelectError<'"orders!inner(…)": relations cannot filter the rows'>[]>()
  const spread = await lines.select('...orders(id)').orThrow()
  expectTypeOf(spread).toEqualTypeOf<SelectError<'"...orders(…)": relations cannot be spread'>[]>()
  const path = await customers.select('address->city').orThrow()
  expectTypeOf(path).toEqualTypeOf<
    SelectError<'"address->" is not supported: read the column and take the part in the program'>[]
  >()
  // @ts-expect-error
  db.from('nowhere')
}

export async function results() {
  const { data, error, count, hasMore } = await orders.select('id')
  expectTypeOf(data).toEqualTypeOf<{ id: number }[] | null>()
  expectTypeOf(count).toEqualTypeOf<number | null>()
  expectTypeOf(hasMore).toEqualTypeOf<boolean>()
  if (error === null) expectTypeOf(data).toEqualTypeOf<{ id: number }[]>()
  else expectTypeOf(data).toEqualTypeOf<null>()

  const one = await orders.select('id').eq('id', 1).single()
  expectTypeOf(one.data).toEqualTypeOf<{ id: number } | null>()
  const maybe = await orders.select('id').eq('id', 1).maybeSingle().orThrow()
  expectTypeOf(maybe).toEqualTypeOf<{ id: number } | null>()
  expectTypeOf(await orders.count('estimated').where({ state: 'paid' }).orThrow()).toEqualTypeOf<number>()
  for await (const row of orders.select('id').order({ id: 'asc' }).all({ batch: 10 }))
    expectTypeOf(row).toEqualTypeOf<{ id: number }>()
}

/** Conditions know the columns and their values. */
export const conditions = () => [
  orders
    .select('id')
    .where({
      total: { gt: 5, not: { eq: 7 } },
      state: ['new', 'paid'],
      approver_id: null,
      or: [{ id: 1 }, { at: { lt: new Date() } }],
    })
    .where({ not: { state: 'sent' }, tags: { contains: ['a'] } })
    .eq('state', 'new')
    .neq('total', null)
    .gt('at', new Date())
    .gte('id', 1)
    .lt('id', 9)
    .lte('id', 8)
    .like('at', '2026%')
    .ilike('state', 'N%')
    .is('total', null)
    .in('state', ['new', 'paid'])
    .contains('tags', ['a'])
    .overlaps('tags', ['a'])
    .containedBy('tags', ['a'])
    .not('state', 'in', ['sent'])
    .or('total.gt.5,at.is.null')
    .order({ at: 'desc', id: { direction: 'asc', nulls: 'last' } })
    .order('id', { ascending: false, nullsFirst: true })
    .page(2, 50)
    .range(0, 9)
    .limit(5)
    .count('exact')
    .signal(new AbortController().signal)
    .timeout(1_000),
  // @ts-expect-error
  orders.select('id').where({ nope: 1 }),
  // @ts-expect-error
  orders.select('id').where({ state: 'lost' }),
  // @ts-expect-error
  orders.select('id').where({ total: { gt: 'a' } }),
  // @ts-expect-error
  orders.select('id').eq('nope', 1),
  // @ts-expect-error
  orders.select('id').eq('id', 'x'),
  // @ts-expect-error
  orders.select('id').in('state', ['lost']),
  // @ts-expect-error
  orders.select('id').order({ nope: 'asc' }),
  // @ts-expect-error
  orders.select('id').order({ id: 'down' }),
]

/** Without a database, names are free and values are JSON, never any. */
export async function untyped() {
  const loose = createClient({ url: 'http://localhost' })
  expectTypeOf(await loose.from('anything').select({ id: true }).orThrow()).toEqualTypeOf<{ id: Json }[]>()
  expectTypeOf(await loose.from('anything').select('id, name').orThrow()).toEqualTypeOf<
    { id: Json; name: Json }[]
  >()
  expectTypeOf(await loose.from('anything').select().orThrow()).toEqualTypeOf<{ [column: string]: Json }[]>()
}
