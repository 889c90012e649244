import type { Request } from '../load/load.ts'
import { PASSWORD } from '../loads.ts'
import type { Bench } from '../scenario.ts'
import { addDeliveredWebhook, bearer, firstWebhook, JSON_BODY, openCallers } from './callers.ts'
import { emailOf, isBanned, keyOf, MOST, ORGANIZATION_ID, partOf, TAGS, tokenOf } from './fill.ts'
import { type Headers, type List, list, repeated, rotated, type Subject, uncached, until } from './kinds.ts'

const DELIVERED = 'growth_delivered'
/** Besides the table that grows. */
export const TABLES = `create table ${DELIVERED} (name text)`

/** More than there are in a round. */
const SIGN_INS = 80

/** Lists count to here, so that they cost more until there are so many. */
const COUNTED = 10_000

/** Everything whose cost is measured at each size. */
export async function openSubjects(bench: Bench): Promise<readonly Subject[]> {
  const { service } = bench
  const callers = await openCallers(bench)
  const delivered = await addDeliveredWebhook(bench, callers.operator, DELIVERED)
  const webhook = await firstWebhook(service.controlUrl)
  const lists = (of: string, headers: Headers, from: number, all: Readonly<Record<string, List>>) =>
    Object.entries(all).map(
      ([title, what]): Subject => ({ title, of, from, side: list(bench, title, headers, what) }),
    )
  const insert = repeated(bench, 'insert of a row, and its delivery', service.headers, () => [
    insertInto(DELIVERED),
  ])
  const own = { ...callers.admin, ...JSON_BODY }
  return [
    {
      title: 'get-session, not in the cache',
      of: 'sessions',
      side: uncached(bench, 'get-session', {}, (size) =>
        spread(size).map((n) => ({
          path: '/api/auth/get-session',
          headers: bearer(tokenOf(n)),
          tag: TAGS.session(n),
        })),
      ),
    },
    {
      title: 'sign-in',
      of: 'users',
      // The hash is nine tenths of it.
      compared: 'database',
      side: rotated(
        bench,
        'sign-in',
        { ...JSON_BODY, origin: service.url },
        (size) => spread(size).map(signInOf),
        SIGN_INS,
      ),
    },
    ...lists('users', callers.admin, COUNTED, USERS),
    ...lists('users', callers.admin, COUNTED, {
      'list-users, part of a name': { ...ofUsers(...SEARCHES), entries: 1 },
    }),
    ...lists('members', callers.owner, 1_000, MEMBERS),
    {
      title: 'row by key',
      of: 'rows',
      side: repeated(bench, 'row by key', service.headers, (size) => spread(size).map(byKey)),
    },
    {
      title: 'filtered page of 25 rows',
      of: 'rows',
      side: repeated(bench, 'filtered page', service.headers, () =>
        Array.from({ length: 40 }, (_, kind) => pageOf(kind)),
      ),
    },
    {
      title: 'row by key, by an API key that is not in the cache',
      of: 'API keys',
      most: MOST.keys,
      side: uncached(bench, 'API key', service.headers, (size) =>
        spread(size).map((n) => ({ ...byKey(n), headers: { apikey: keyOf(n) }, tag: TAGS.key(n) })),
      ),
    },
    {
      title: 'insert of a row that no webhook is for',
      of: 'webhooks',
      most: MOST.webhooks,
      side: repeated(bench, 'insert', service.headers, () => [insertInto('bench_inserted')]),
    },
    {
      title: 'insert of a row, and its delivery',
      of: 'pending deliveries',
      side: (size) => until(delivered, insert(size)),
    },
    ...lists('pending deliveries', callers.operator, COUNTED, {
      'log of deliveries': {
        paths: [`/admin/webhooks/${webhook}/deliveries?limit=50`],
        member: 'data.deliveries',
        entries: 50,
      },
    }),
    ...lists('audit events', callers.admin, 1_000, AUDIT),
    {
      title: 'update-user, with its audit event',
      of: 'audit events',
      side: repeated(bench, 'update-user', own, () => ['Ada', 'Eve'].map(renameTo)),
    },
  ]
}

/** Numbers of users who are not banned, from all over the table. */
const spread = (size: number): readonly number[] =>
  Array.from({ length: 1_000 }, (_, index) => 1 + ((index * 7_919) % size)).filter((n) => !isBanned(n))

const post = (path: string, body: object): Request => ({ method: 'POST', path, body: JSON.stringify(body) })

const signInOf = (n: number): Request =>
  post('/api/auth/sign-in/email', { email: emailOf(n), password: PASSWORD })

const renameTo = (name: string): Request => post('/api/auth/update-user', { name })

const byKey = (id: number): Request =>
  post('/gateway/fetch', {
    table_name: 'growth_rows',
    conditions: [{ operator: 'eq', column: 'id', value: id }],
  })

const pageOf = (kind: number): Request =>
  post('/gateway/fetch', {
    table_name: 'growth_rows',
    conditions: [{ operator: 'eq', column: 'kind', value: kind }],
    sort_by: { field: 'id', direction: 'desc' },
    limit: 25,
  })

const insertInto = (table: string): Request => ({
  method: 'PUT',
  path: '/gateway/insert',
  body: JSON.stringify({ table_name: table, insert_body: { name: 'grown' } }),
})

const ofUsers = (...queries: readonly string[]) => ({
  paths: queries.map((query) => `/api/auth/admin/list-users?${query}`),
  member: 'users',
})

const USERS: Readonly<Record<string, List>> = {
  'list-users': { ...ofUsers(''), entries: 100 },
  'list-users, the ninth page': { ...ofUsers('offset=800&limit=100'), entries: 100 },
  'list-users, of a role, by creation': {
    ...ofUsers('filterField=role&filterValue=support&sortBy=createdAt&sortDirection=desc&limit=20'),
    entries: 20,
  },
  'list-users, banned, by name': {
    ...ofUsers('filterField=banned&filterValue=true&sortBy=name&limit=20'),
    entries: 20,
  },
  'list-users, unproven, by creation': {
    ...ofUsers('filterField=emailVerified&filterValue=false&sortBy=createdAt&limit=20'),
    entries: 20,
  },
}

/** One user each. */
const SEARCHES = Array.from({ length: 50 }, (_, index) => `searchField=name&searchValue=${partOf(index + 1)}`)

const MEMBERS: Readonly<Record<string, List>> = {
  'list-members': {
    paths: [`/api/auth/organization/list-members?organizationId=${ORGANIZATION_ID}&limit=100`],
    member: 'members',
    entries: 100,
  },
}

const AUDIT: Readonly<Record<string, List>> = {
  'list-audit-events': {
    paths: ['/api/auth/admin/list-audit-events?limit=50'],
    member: 'events',
    entries: 50,
  },
  'list-audit-events, of a user': {
    paths: ['/api/auth/admin/list-audit-events?limit=50&targetId=00000001-0000-7000-8000-000000000007'],
    member: 'events',
    entries: 1,
  },
}
