import assert from 'node:assert/strict'
import { answerTo, assertSameRows, rowsOf } from './answers.ts'
import type { Load, Request } from './load/load.ts'
import { ROWS, type Service } from './service.ts'

/** Requests to one service, and how their answers are checked. */
export type CheckedLoad = { readonly load: Load; check(): Promise<void> }

export const CONNECTIONS = 16

/** Keys that lie all over the table. */
export const ids = Array.from({ length: 1_000 }, (_, index) => 1 + ((index * 7_919) % ROWS))

export const PASSWORD = 'correct horse battery'

const POST = { method: 'POST' } as const

/** Signs up a user and returns the token of the session. */
export async function signUp(url: string, name: string): Promise<string> {
  const answer = await fetch(`${url}/api/auth/sign-up/email`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: url },
    body: JSON.stringify({ name, email: `${name}@example.com`, password: PASSWORD }),
  })
  if (!answer.ok) throw new Error(`${url}: ${await answer.text()}`)
  const { token } = (await answer.json()) as { token: string } // the response schema SignedUp
  return token
}

/** One session, which is in the cache of the process after the first request. */
export async function cachedSession({ url }: Pick<Service, 'url'>): Promise<CheckedLoad> {
  const headers = { authorization: `Bearer ${await signUp(url, 'ada')}` }
  const request = { path: '/api/auth/get-session' }
  const load = { url, headers, requests: [request], connections: CONNECTIONS }
  const { user } = (await answerTo(load, request)) as { user: { email: string } }
  assert.equal(user.email, 'ada@example.com')
  return answers(load)
}

/** Requests that always have the same answer, which is what is expected of them from then on. */
export async function answers(load: Load): Promise<CheckedLoad> {
  const [request = { path: '/' }] = load.requests
  const first = await answerTo(load, request)
  return { load, check: async () => assert.deepEqual(await answerTo(load, request), first) }
}

/** Requests whose answers have the rows that `where` selects, in `data`. */
function readsOf(
  { url, headers, databaseUrl }: Service,
  requests: readonly Request[],
  wheres: readonly string[],
): CheckedLoad {
  const load = { url, headers, requests, connections: CONNECTIONS }
  return {
    load,
    async check() {
      for (const index of [0, requests.length - 1].slice(0, requests.length)) {
        const request = requests[index] ?? { path: '/' }
        const { data } = (await answerTo(load, request)) as { data: unknown }
        assertSameRows(data, await rowsOf(databaseUrl, `select * from bench_rows where ${wheres[index]}`))
      }
    },
  }
}

const fetchOf = (body: object): Request => ({ ...POST, path: '/gateway/fetch', body: JSON.stringify(body) })

export const byId = (id: number) => ({
  table_name: 'bench_rows',
  conditions: [{ operator: 'eq', column: 'id', value: id }],
})

export const rowByPost = (service: Service): CheckedLoad =>
  readsOf(
    service,
    ids.map((id) => fetchOf(byId(id))),
    ids.map((id) => `id = ${id}`),
  )

export const rowByGet = (service: Service): CheckedLoad =>
  readsOf(
    service,
    ids.map((id) => ({ path: `/data?view=bench_rows&eq_column=id&eq_value=${id}` })),
    ids.map((id) => `id = ${id}`),
  )

export const firstRows = (service: Service, count: number): CheckedLoad =>
  readsOf(
    service,
    [
      fetchOf({
        table_name: 'bench_rows',
        conditions: [{ column: 'id', operator: 'lte', value: count }],
        limit: count,
      }),
    ],
    [`id <= ${count}`],
  )

/** 25 rows of a page, by a condition on a column and an order that the key gives. */
export const filteredPage = (service: Service): CheckedLoad =>
  readsOf(
    service,
    ids.map((id) =>
      fetchOf({
        table_name: 'bench_rows',
        conditions: [
          { operator: 'gte', column: 'id', value: id },
          { operator: 'eq', column: 'active', value: true },
        ],
        sort_by: { field: 'id', direction: 'asc' },
        limit: PAGE,
      }),
    ),
    ids.map((id) => pageWhere(`${id}`)),
  )

const PAGE = 25
export const pageWhere = (id: string): string => `id >= ${id} and active order by id limit ${PAGE}`

const insertedRow = (id: number) => ({
  name: `name ${id}`,
  email: `user${id}@example.com`,
  active: true,
  price: id,
  meta: { k: id },
})

/** A row a request, each with a transaction of its own. */
export function insertRow({ url, headers, databaseUrl }: Service): CheckedLoad {
  const requests = ids.map((id) => ({
    method: 'PUT',
    path: '/gateway/insert',
    body: JSON.stringify({ table_name: 'bench_inserted', insert_body: insertedRow(id) }),
  }))
  const load = { url, headers, requests, connections: CONNECTIONS }
  return {
    load,
    async check() {
      const [request = { path: '/' }] = requests
      const { data } = (await answerTo(load, request)) as { data: unknown }
      assertSameRows(data, await rowsOf(databaseUrl, 'select * from bench_inserted order by id desc limit 1'))
    },
  }
}

const updateOf = (id: number) => ({ ...byId(id), update_body: { note: `note ${id}` } })

export function updateRow({ url, headers, databaseUrl }: Service): CheckedLoad {
  const requests = ids.map((id) => ({ ...POST, path: '/gateway/update', body: JSON.stringify(updateOf(id)) }))
  const load = { url, headers, requests, connections: CONNECTIONS }
  return {
    load,
    async check() {
      const [request = { path: '/' }] = requests
      const { data } = (await answerTo(load, request)) as { data: unknown }
      assertSameRows(
        data,
        await rowsOf(
          databaseUrl,
          `select * from bench_rows where id = ${ids[0]} and note = 'note ${ids[0]}'`,
        ),
      )
    },
  }
}

/** An insert, an update and a read, which see each other's rows. */
export function threeOperations({ url, headers, databaseUrl }: Service): CheckedLoad {
  const requests = ids.map((id) => {
    const insert = { table_name: 'bench_inserted', insert_body: insertedRow(id) }
    const operations = [
      { id: 'insert', kind: 'insert', payload: insert },
      { id: 'update', kind: 'update', payload: updateOf(id) },
      { id: 'read', kind: 'fetch', payload: byId(id) },
    ]
    return { ...POST, path: '/gateway/transaction', body: JSON.stringify({ operations }) }
  })
  const load = { url, headers, requests, connections: CONNECTIONS }
  return {
    load,
    async check() {
      const [request = { path: '/' }] = requests
      const { data } = (await answerTo(load, request)) as { data: { results: { data: unknown }[] } }
      const read = data.results.at(-1)?.data
      assertSameRows(read, await rowsOf(databaseUrl, `select * from bench_rows where id = ${ids[0]}`))
    },
  }
}
