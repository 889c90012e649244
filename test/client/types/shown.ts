import { createClient } from '../../../packages/client/src/client.ts'
import type { Database } from './database.ts'

const db = createClient<Database>({ url: 'http://localhost' })

/** What an editor shows of these is in types.test.ts. */
export async function shown() {
  const rows = await db
    .from('lines')
    .select({ id: 'order_id', orders: { at: true, customer_id: { name: true } } })
    .orThrow()
  const byText = await db.from('orders').select('sum:total, lines(product)').single().orThrow()
  const every = await db.from('lines').select().orThrow()
  const wrong = await db.from('orders').select('nope').orThrow()
  const written = await db.from('orders').insert({ customer_id: 1 }).select('id').single().orThrow()
  const done = await db
    .transaction([
      db.from('orders').delete().eq('id', 1).select('id').single(),
      db.from('lines').delete().eq('position', 1),
    ])
    .orThrow()
  const called = await db.rpc('add', { a: 1 }).value().orThrow()
  return [rows, byText, every, wrong, written, done, called]
}
