import { createClient } from '@supabase/supabase-js'
import type {
  CompositeTypes,
  Constants,
  Database,
  Enums,
  Json,
  Tables,
  TablesInsert,
  TablesUpdate,
} from './database.ts'

/** Compiles only if the two types are the same. */
const same = <A, B>(..._proof: Same<A, B> extends true ? [] : [never]): void => {}
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
/** The type of the rows, or the row, that a query answers. */
type Data<Query extends PromiseLike<{ data: unknown }>> = NonNullable<Awaited<Query>['data']>

type Mood = 'a "good" one' | "b's"
const client = createClient<Database>('http://localhost:54321', 'key')

const authors = client.from('author').select('id, name, felt')
same<Data<typeof authors>, { id: number; name: string; felt: Mood }[]>()

const whole = client.from('book').select('*').eq('author_id', 1).single()
same<Data<typeof whole>, Tables<'book'>>()

const withAuthor = client.from('book').select('price, author(name, mail)')
same<Data<typeof withAuthor>, { price: number | null; author: { name: string; mail: string | null } }[]>()

const withBooks = client.from('author').select('name, book(id, facts)')
same<Data<typeof withBooks>, { name: string; book: { id: number; facts: Json }[] }[]>()

const withCover = client.from('book').select('id, cover(image)').single()
same<Data<typeof withCover>, { id: number; cover: { image: string | null } | null }>()

const renamed = client.from('author').select('who:name, written:book!book_author_id_fkey(tags)')
same<Data<typeof renamed>, { who: string; written: { tags: string[] | null }[] }[]>()

const view = client.from('names').select('loud').order('id')
same<Data<typeof view>, { loud: string | null }[]>()

const called = client.rpc('books_of', { author: 1 }).select('id, author(name)')
same<Data<typeof called>, { id: number; author: { name: string } }[]>()

const sum = client.rpc('add', { a: 1, b: 2 })
same<Data<typeof sum>, number>()

const pairs = client.rpc('pairs', { of: ['a'] })
same<Data<typeof pairs>, { n: number; felt: Mood }[]>()

const elsewhere = client.schema('sales').from('__proto__').select('parent')
same<Data<typeof elsewhere>, { parent: number | null }[]>()

const inserted = client
  .from('book')
  .insert({ author_id: 1, facts: { pages: 66 } })
  .select('id')
same<Data<typeof inserted>, { id: number }[]>()

const updated = client.from('author').update({ felt: "b's", mail: null }).eq('id', 1)
same<Awaited<typeof updated>['data'], null>()

export const refused = [
  // @ts-expect-error facts has no default
  () => client.from('book').insert({ author_id: 1 }),
  // @ts-expect-error the database computes it
  () => client.from('book').update({ twice: 2 }),
  // @ts-expect-error an identity that is always generated
  () => client.from('author').insert({ id: 1, name: 'Ada' }),
  // @ts-expect-error no label of the enum
  () => client.from('author').update({ felt: 'c' }),
  // @ts-expect-error there is no such table
  () => client.from('nowhere').select('*'),
  // @ts-expect-error an expression of the view
  () => client.from('names').update({ loud: 'ADA' }),
  // @ts-expect-error a view that takes no rows
  () => client.from('counted').insert({ n: 1 }),
  // @ts-expect-error the argument is missing
  () => client.rpc('books_of', {}),
]

same<Tables<{ schema: 'sales' }, '__proto__'>['a-b'], string | null>()
same<Tables<'names'>, { id: number | null; name: string | null; loud: string | null }>()
same<TablesInsert<'cover'>, { book_id: number; image?: string | null }>()
same<TablesUpdate<'cover'>, { book_id?: number; image?: string | null }>()
same<Enums<'mood'>, Mood>()
same<Enums<{ schema: 'public' }, 'mood'>, Mood>()
same<CompositeTypes<'place'>['moods'], Mood[] | null>()
same<(typeof Constants)['public']['Enums']['mood'], readonly ['a "good" one', "b's"]>()
