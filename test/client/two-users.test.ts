import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { before, test } from 'node:test'
import { createClient } from '#client/client.ts'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'

type Database = {
  public: {
    Tables: {
      note: {
        Row: { id: number; text: string; user_id: string }
        Insert: { text: string }
        Update: { text?: string }
        Relationships: []
      }
    }
    Views: Record<never, never>
    Functions: Record<never, never>
  }
}

const { t, users, createTable, secured, sql } = await createSecuredTables()
const { apiKey: key } = await t.key(['gateway.read', 'gateway.write', 'gateway.delete'], {
  client_name: 'app',
})

before(async () => {
  await createTable('note', [TEXT, USER])
  await secured('note', [{ preset: 'owner' }])
})

/** A server renders pages for its visitors side by side, by one client whose session is that of the visitor. */
const visitor = new AsyncLocalStorage<{ readonly token: string }>()
const db = createClient<Database>({
  url: t.url,
  key,
  client: 'app',
  session: () => visitor.getStore()?.token,
})

async function render(): Promise<readonly string[]> {
  const notes = await db.from('note').select({ text: true, user_id: true }).order({ id: 'asc' }).orThrow()
  return notes.map(({ user_id }) => user_id)
}

test('a server that renders for two users in turn, a thousand times, shows each only their own rows', async () => {
  const people = [users.ada, users.bea]
  for (const user of people)
    await visitor.run(user, () =>
      db
        .from('note')
        .insert([{ text: `of ${user.id}` }, { text: 'another' }])
        .orThrow(),
    )
  const renders = Array.from({ length: 1_000 }, (_, index) => async () => {
    const user = people[index % 2]
    assert.ok(user)
    // Some write as well, and some count.
    const shown = await visitor.run(user, async () => {
      if (index % 10 < 2)
        await db
          .from('note')
          .update({ text: `${index}` })
          .eq('user_id', user.id)
          .orThrow()
      assert.equal(await db.from('note').count().orThrow(), 2)
      return render()
    })
    assert.deepEqual(shown, [user.id, user.id])
  })
  const queue = renders.values()
  const worker = async () => {
    for (const work of queue) await work()
  }
  await Promise.all(Array.from({ length: 8 }, worker))
  const { data, error } = await db.from('note').select()
  assert.deepEqual([data, error?.status], [null, 403])
  assert.equal((await sql('select from note')).length, 4)
})

test('a server may pass on the cookie of its visitor instead of a token', async () => {
  const cookie = `${t.config.session.cookie_name}=${users.bea.token}`
  const own = createClient<Database>({ url: t.url, key, client: 'app', session: () => ({ cookie }) })
  const notes = await own.from('note').select('user_id').orThrow()
  assert.deepEqual(notes, [{ user_id: users.bea.id }, { user_id: users.bea.id }])
})

test('a client of a user who has signed out gets no rows, and none of another one', async () => {
  const own = createClient<Database>({ url: t.url, key, client: 'app', session: () => users.ada.token })
  assert.equal((await own.from('note').select().orThrow()).length, 2)
  await users.ada.post('/api/auth/sign-out')
  const { data, error } = await own.from('note').select()
  assert.deepEqual([data, error?.status], [null, 401])
})
