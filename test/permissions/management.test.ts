import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { OPERATIONS, type Operation } from '#gateway/management/operations.ts'
import { withClient } from '#test/database.ts'
import { type Actor, actor } from '#test/harness.ts'
import { catalogueDigest } from '#test/management/catalogue-digest.ts'
import { objectsFor, REQUESTS } from '#test/management/requests.ts'
import { createSecuredTables } from '#test/secured-tables.ts'
import { type Expected, expectMatrix, type Matrix } from './matrix.ts'

/** `without` is bound to the client and has all rights but that of the operation, `exact` only that one. */
type Role = 'none' | 'admin' | 'unbound' | 'other' | 'without' | 'exact' | 'management' | 'all'

const MISSING: Expected = [401, 'api_key_required']
const RIGHT: Expected = [403, 'insufficient_rights']
const EXPECTED: Readonly<Record<Role, Expected>> = {
  none: MISSING,
  admin: MISSING,
  unbound: RIGHT,
  other: [403, 'api_key_client_mismatch'],
  without: RIGHT,
  exact: 200,
  management: 200,
  all: 200,
}

const { t, database } = await createSecuredTables()
const ROLES = Object.keys(EXPECTED) as Role[] // the keys of a record of roles
const NAMES = Object.keys(OPERATIONS) as Operation[] // the keys of OPERATIONS
/** No wildcard lets a key run code on a client with row-level security. */
const NAMED_ONLY: Partial<Record<Operation, Readonly<Record<Role, Expected>>>> = {
  upsert_function: { ...EXPECTED, management: RIGHT, all: RIGHT },
}
const rowOf = (request: Operation) => ({ request, expected: NAMED_ONLY[request] ?? EXPECTED })
const MATRIX: Matrix<Role, Operation> = {
  ...Object.fromEntries(NAMES.map((request) => [routeOf(request), rowOf(request)])),
  // An alias.
  'POST /management/functions': rowOf('upsert_function'),
}

function routeOf(operation: Operation): string {
  const { method, path } = OPERATIONS[operation]
  return `${method} ${path.replace(/:(\w+)/g, '{$1}')}`
}

/** Objects of its own for each cell. */
const nameOf = (operation: Operation, role: Role) => `${operation}_${role}`

before(() =>
  withClient(database.url, async (client) => {
    for (const operation of NAMES)
      await client.query(ROLES.map((role) => objectsFor(nameOf(operation, role))).join(''))
  }),
)

async function callers(operation: Operation): Promise<Readonly<Record<Role, Actor>>> {
  const { right } = OPERATIONS[operation]
  const others = NAMES.map((name) => OPERATIONS[name].right).filter((name) => name !== right)
  const client = { 'x-service-client': 'app' }
  const bound = async (rights: readonly string[], client_name: string | null = 'app') => {
    const { apiKey } = await t.key(rights, { client_name })
    return actor(t.url, { apikey: apiKey, ...client })
  }
  return {
    none: actor(t.url, client),
    admin: actor(t.url, { ...t.admin.headers, ...client }),
    unbound: await bound(['*'], null),
    other: await bound(['*', right], 'default'),
    without: await bound(['gateway.*', ...new Set(others)]),
    exact: await bound([right]),
    management: await bound(['management.*']),
    all: await bound(['*']),
  }
}

test('every management endpoint is in the table', () => {
  const routes = t.service.book
    .entries()
    .filter(({ path }) => path.startsWith('/management/'))
    .map(({ method, path }) => `${method} ${path}`)
  assert.deepEqual(Object.keys(MATRIX).toSorted(), routes.toSorted())
})

test('only a bound key with the right of the endpoint may use it', async () => {
  const known = new Map<Operation, Promise<Readonly<Record<Role, Actor>>>>()
  await expectMatrix(MATRIX, async (role, { method }, operation) => {
    const all = known.get(operation) ?? callers(operation)
    known.set(operation, all)
    const { path, body } = REQUESTS[operation](nameOf(operation, role))
    return (await all)[role].send(method, path, { body })
  })
})

test('a refused key changes nothing', async () => {
  await withClient(database.url, async (client) => {
    const found = await catalogueDigest(client)
    for (const operation of NAMES) {
      const all = await callers(operation)
      for (const role of ROLES.filter((role) => rowOf(operation).expected[role] !== 200)) {
        const { path, body } = REQUESTS[operation](nameOf(operation, role))
        await all[role].send(OPERATIONS[operation].method, path, { body })
      }
    }
    assert.equal(await catalogueDigest(client), found)
  })
})
