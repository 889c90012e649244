import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { QueryClient, QueryObserver } from '@tanstack/query-core'
import { createClient } from '#client/client.ts'
import { invalidate } from '#client/query/invalidate.ts'
import { type Queryable, queryOptions } from '#client/query/query-options.ts'
import { eventually } from '#test/embedded.ts'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'

const { t, sql, users, admin, adas, createTable, secured, insert } = await createSecuredTables()
const pages = adas.headers.apikey ?? assert.fail()

let count = 0
async function ownTable(): Promise<string> {
  const name = `note_${++count}`
  await createTable(name, [TEXT, USER])
  await secured(name, [{ preset: 'owner' }])
  const enabled = await admin.send('PUT', `/management/tables/${name}/realtime`, { body: { enabled: true } })
  assert.equal(enabled.status, 200, enabled.text)
  return name
}

const clientOf = (session: () => string | undefined) =>
  createClient({ url: t.url, key: pages, client: 'app', session })
function newCache(context: TestContext, queries: object = {}): QueryClient {
  const cache = new QueryClient({ defaultOptions: { queries } })
  context.after(() => cache.clear())
  return cache
}

const keyOf = (read: Queryable<unknown>): string => JSON.stringify(queryOptions(read).queryKey)
const texts = (rows: readonly object[] | undefined) =>
  rows?.map((row) => ('text' in row ? row.text : undefined))

test('users who sign in one after the other in one browser do not share what was read', async (context) => {
  const table = await ownTable()
  await sql(
    `insert into ${table} (user_id, text) values ('${users.ada.id}', 'of Ada'), ('${users.bea.id}', 'of Bea')`,
  )
  const cache = newCache(context, { staleTime: Number.POSITIVE_INFINITY, retry: false })
  let user = users.ada
  const db = clientOf(() => user.token)
  const read = () => db.from(table).select({ text: true })
  const ofAda = queryOptions(read())
  assert.deepEqual(texts(await cache.fetchQuery(ofAda)), ['of Ada'])
  user = users.bea
  assert.deepEqual(texts(await cache.fetchQuery(queryOptions(read()))), ['of Bea'])
  // Options that a component has kept.
  const kept = await ofAda.queryFn({ signal: new AbortController().signal }).catch((error) => error)
  assert.equal(kept.code, 'subject_changed')
  user = users.ada
  assert.deepEqual(texts(cache.getQueryData(queryOptions(read()).queryKey)), ['of Ada'])
  const shown = JSON.stringify(
    cache
      .getQueryCache()
      .getAll()
      .map(({ queryKey }) => queryKey),
  )
  for (const secret of [users.ada.token, users.bea.token, pages]) assert.ok(!shown.includes(secret))
})

test('a session that changes while a query runs does not bring its rows to another user', async () => {
  const table = await ownTable()
  let user = users.ada
  const db = createClient({
    url: t.url,
    key: pages,
    client: 'app',
    session: () => user.token,
    fetch: (...args) => {
      const answer = fetch(...args)
      user = users.bea
      return answer
    },
  })
  const { queryFn } = queryOptions(db.from(table).select())
  const result = await queryFn({ signal: new AbortController().signal }).catch((error) => error)
  assert.equal(result.code, 'subject_changed')
})

test('reads of other forms have other keys', async () => {
  const table = await ownTable()
  const db = clientOf(() => users.ada.token)
  const read = db.from(table).select({ text: true })
  const all = [
    read,
    read.limit(1),
    read.single(),
    read.maybeSingle(),
    read.eq('text', 'a'),
    db.from(table).select({ text: true, id: true }),
    db.from(table).count(),
    createClient({ url: t.url, key: pages, client: 'app', session: () => users.ada.token, numbers: 'exact' })
      .from(table)
      .select({ text: true }),
  ].map(keyOf)
  assert.equal(new Set(all).size, all.length)
  assert.equal(keyOf(db.from(table).select({ text: true })), all[0])
})

test('a query ends with its signal, and functions are no queries', async () => {
  const table = await ownTable()
  const db = clientOf(() => users.ada.token)
  const { queryFn } = queryOptions(db.from(table).select())
  const leaving = new AbortController()
  leaving.abort()
  assert.equal((await queryFn({ signal: leaving.signal }).catch((error) => error)).code, 'aborted')
  // @ts-expect-error: a function may write
  assert.throws(() => queryOptions(db.rpc('anything')), TypeError)
})

test('a change of a table invalidates its queries, and no others', async (context) => {
  const [table, other] = [await ownTable(), await ownTable()]
  const cache = newCache(context)
  const reads: string[] = []
  const db = createClient({
    url: t.url,
    key: pages,
    client: 'app',
    session: () => users.ada.token,
    fetch: (address, init) => {
      if (String(address).endsWith('/gateway/fetch')) reads.push(JSON.parse(String(init?.body)).table_name)
      return fetch(address, init)
    },
  })
  const readsOf = (name: string) => reads.filter((one) => one === name).length
  const [own, others] = [table, other].map(
    (name) => new QueryObserver(cache, queryOptions(db.from(name).select({ text: true }))),
  )
  for (const observer of [own, others]) context.after(observer?.subscribe(() => {}) ?? assert.fail())
  const errors: unknown[] = []
  context.after(invalidate(cache, db, [table], { onError: (error) => errors.push(error) }))
  // At first, and again when the stream has begun.
  const isRead = (observer = own) => observer?.getCurrentResult().fetchStatus === 'idle'
  await eventually(() => readsOf(table) === 2 && readsOf(other) === 1 && isRead() && isRead(others))
  for (const name of [other, table]) assert.equal((await insert(adas, name, { text: 'new' })).status, 200)
  await eventually(() => texts(own?.getCurrentResult().data)?.join() === 'new')
  assert.deepEqual([readsOf(other), texts(others?.getCurrentResult().data), errors], [1, [], []])
})

test('many changes at once end in a query that has read the last of them', async (context) => {
  const table = await ownTable()
  const cache = newCache(context)
  const db = clientOf(() => users.ada.token)
  const observer = new QueryObserver(cache, queryOptions(db.from(table).count()))
  context.after(observer.subscribe(() => {}))
  context.after(invalidate(cache, db, [db.from(table).select()]))
  for (let write = 0; write < 40; write++) await insert(adas, table, { text: `${write}` })
  await eventually(() => observer.getCurrentResult().data === 40)
})

test('a table that may not be followed is told', async (context) => {
  const cache = newCache(context)
  const errors: { code: string }[] = []
  invalidate(
    cache,
    clientOf(() => users.ada.token),
    ['nowhere'],
    { onError: (error) => errors.push(error) },
  )
  await eventually(() => errors.length > 0)
  assert.equal(errors[0]?.code, 'table_not_found')
})
