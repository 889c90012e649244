import assert from 'node:assert/strict'
import { type Insertable, Kysely, PostgresDialect, type Selectable, type Updateable } from 'kysely'
import pg from 'pg'
import type { Book, DB, JsonValue } from './database.ts'

/** Compiles only if the two types are the same. */
const same = <A, B>(..._proof: Same<A, B> extends true ? [] : [never]): void => {}
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

type Mood = 'a "good" one' | "b's"
const [, , connectionString] = process.argv
await using db = new Kysely<DB>({ dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString }) }) })

const { id } = await db
  .insertInto('author')
  .values({ name: 'Ada', felt: "b's" })
  .returning('id')
  .executeTakeFirstOrThrow()
same<typeof id, string>()
await db
  .insertInto('book')
  .values([
    { author_id: id, price: '9.50', facts: { pages: 66 }, tags: ['maths'] },
    { author_id: BigInt(id), price: null, facts: '[1]' },
  ])
  .execute()

const rows = await db
  .selectFrom('book')
  .innerJoin('author', 'author.id', 'book.author_id')
  .select(['author.name', 'author.felt', 'author.at', 'book.price', 'book.tags', 'book.facts', 'book.twice'])
  .where('author.name', '=', 'Ada')
  .orderBy('book.id')
  .execute()
type Joined = {
  name: string
  felt: Mood
  at: Date
  price: string | null
  tags: string[] | null
  facts: JsonValue
  twice: number | null
}
same<typeof rows, Joined[]>()
assert.ok(rows[0]?.at instanceof Date)
assert.deepEqual(
  rows.map(({ at: _at, ...row }) => row),
  [
    { name: 'Ada', felt: "b's", price: '9.50', tags: ['maths'], facts: { pages: 66 }, twice: 2 },
    { name: 'Ada', felt: "b's", price: null, tags: null, facts: [1], twice: 4 },
  ],
)

const { numUpdatedRows } = await db
  .updateTable('book')
  .set({ price: 10 })
  .where('id', '=', 1)
  .executeTakeFirst()
same<typeof numUpdatedRows, bigint>()
const counted = await db.selectFrom('counted').selectAll().executeTakeFirstOrThrow()
same<typeof counted, { n: string | null }>()
assert.deepEqual(counted, { n: '1' })
await db.insertInto('sales.__proto__').values({ id: 1 }).execute()

same<Selectable<Book>['price'], string | null>()
same<Insertable<Book>['id'], number | undefined>()
same<Updateable<Book>['facts'], Insertable<Book>['facts'] | undefined>()

export const refused = [
  // @ts-expect-error facts has no default
  () => db.insertInto('book').values({ author_id: id }),
  // @ts-expect-error the database computes it
  () => db.updateTable('book').set({ twice: 2 }),
  // @ts-expect-error an identity that is always generated
  () => db.insertInto('author').values({ id: 1, name: 'Ada' }),
  // @ts-expect-error no label of the enum
  () => db.updateTable('author').set({ felt: 'c' }),
  // @ts-expect-error there is no such table
  () => db.selectFrom('nowhere').selectAll(),
  // @ts-expect-error pg would write an array of the database
  () => db.updateTable('book').set({ facts: [1] }),
]
