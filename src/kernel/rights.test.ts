import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type Action,
  coversRight,
  EVERY_RIGHT,
  FIXED_RIGHTS,
  grantsFixed,
  grantsTable,
  isRight,
  nameOfRight,
  type TableRight,
} from './rights.ts'

const ACTIONS: readonly Action[] = ['read', 'write', 'delete']

/** Test tables: in `public`, in other schemas, with unusual names, and in schemas named like fixed rights. */
const TABLES: readonly (readonly [schema: string, table: string])[] = [
  ['public', 'users'],
  ['public', 'orders'],
  ['sales', 'orders'],
  ['users', 'orders'],
  ['public', 'gateway'],
  ['public', 'management'],
  ['gateway', 'query'],
  ['management', 'tables'],
  ['pipelines', 'run'],
  ['public', 'sales.orders'],
  ['a.b', 'c'],
]

/** Each right with everything it grants: actions on the tables above, or fixed rights. */
const GRANTS: Readonly<
  Record<string, { readonly tables: readonly string[]; readonly fixed?: readonly string[] }>
> = {
  'users.read': { tables: ['public.users read'] },
  'users.write': { tables: ['public.users write'] },
  'users.delete': { tables: ['public.users delete'] },
  'users.*': { tables: ['public.users read write delete'] },
  'users.orders.read': { tables: ['users.orders read'] },
  'sales.orders.read': { tables: ['sales.orders read'] },
  'sales.orders.*': { tables: ['sales.orders read write delete'] },
  'sales.*': { tables: [] },
  'orders.*': { tables: ['public.orders read write delete'] },
  'gateway.read': { tables: all('read'), fixed: ['gateway.read'] },
  'gateway.write': { tables: all('write'), fixed: ['gateway.write'] },
  'gateway.delete': { tables: all('delete'), fixed: ['gateway.delete'] },
  'gateway.*': { tables: all('read', 'write', 'delete'), fixed: fixed('gateway.') },
  'gateway.bypass_row_level_security': { tables: [], fixed: ['gateway.bypass_row_level_security'] },
  '*.read': { tables: all('read') },
  '*.write': { tables: all('write') },
  '*.delete': { tables: all('delete') },
  '*': { tables: all('read', 'write', 'delete'), fixed: fixed('') },
  'management.read': { tables: [], fixed: ['management.read'] },
  'management.tables.write': { tables: [], fixed: ['management.tables.write'] },
  'management.tables.*': { tables: [], fixed: fixed('management.tables.') },
  'management.*': { tables: [], fixed: fixed('management.') },
  // Invalid rights, which would grant nothing even if they were in a row.
  '*.*': { tables: [] },
  '.read': { tables: [] },
  'users.': { tables: [] },
  users: { tables: [] },
  read: { tables: [] },
  'Users.read': { tables: [] },
  'users.READ': { tables: [] },
  'public.users.read': { tables: [] },
  'a.b.c.read': { tables: [] },
  '': { tables: [] },
}

function all(...actions: readonly Action[]): readonly string[] {
  return TABLES.map(([schema, table]) => `${schema}.${table} ${actions.join(' ')}`)
}
/** Rights that a wildcard includes: all except the right to bypass row-level security. */
function fixed(prefix: string): readonly string[] {
  return Object.keys(FIXED_RIGHTS).filter(
    (right) => right.startsWith(prefix) && right !== 'gateway.bypass_row_level_security',
  )
}

for (const [right, { tables, fixed = [] }] of Object.entries(GRANTS)) {
  test(`"${right}" grants exactly the listed rights`, () => {
    const granted = TABLES.flatMap(([schema, table]) => {
      const actions = ACTIONS.filter((action) => grantsTable([right], { schema, table, action }))
      return actions.length === 0 ? [] : [`${schema}.${table} ${actions.join(' ')}`]
    })
    assert.deepEqual(granted, tables)

    const names = Object.keys(FIXED_RIGHTS) as (keyof typeof FIXED_RIGHTS)[] // the keys of the object above
    assert.deepEqual(
      names.filter((name) => grantsFixed([right], name, { isBound: true, hasPolicies: false })),
      fixed,
      'on a key bound to a client',
    )
    const unbound = fixed.filter((name) => !name.startsWith('management.'))
    assert.deepEqual(
      names.filter((name) => grantsFixed([right], name, { isBound: false, hasPolicies: false })),
      unbound,
      'on a key that is not',
    )
  })
}

test('with row-level security, no wildcard lets a key run code as the role of the client', () => {
  const grants = (right: string) =>
    grantsFixed([right], 'management.functions.write', { isBound: true, hasPolicies: true })
  for (const wildcard of ['*', 'management.*', 'management.functions.*'])
    assert.ok(!grants(wildcard), wildcard)
  assert.ok(grants('management.functions.write'))
})

test('rights are additive', () => {
  const rights = ['users.read', 'nonsense', 'sales.orders.write']
  assert.ok(grantsTable(rights, { schema: 'public', table: 'users', action: 'read' }))
  assert.ok(grantsTable(rights, { schema: 'sales', table: 'orders', action: 'write' }))
  assert.ok(!grantsTable(rights, { schema: 'sales', table: 'orders', action: 'read' }))
  assert.ok(!grantsTable([], { schema: 'public', table: 'users', action: 'read' }))
})

test('isRight accepts all valid rights and nothing else', () => {
  const rights = [
    '*', '*.read', '*.write', '*.delete', 'users.read', 'users.*', 'sales.orders.write', 'sales.orders.*', 'gateway.*', 'management.*',
    'management.tables.*', 'größe.read', 'Users.read', '用户.delete', 'user-data.read', ...Object.keys(FIXED_RIGHTS),
  ] // biome-ignore format: a table
  for (const right of rights) assert.ok(isRight(right), right)
  const none = [
    '', ' ', '.', '..', 'read', 'users', 'users.', '.read', '*.*', '*.*.*', '**', 'users.**', 'us*rs.read', '*.users.read', 'users.*.read', 'users.select',
    'users.READ', 'a.b.c.read', 'users .read', ' users.read', 'users.read ', 'users\n.read', 'users..read', 'users.\0.read', `${'x'.repeat(64)}.read`,
    'gateway.everything', 'gateway.users.read', 'management.write', 'management.users.*', 'management', 'gateway', 'management.tables', 'pipelines.users.read',
    '__proto__', 'constructor', 'toString',
  ] // biome-ignore format: a table
  for (const right of none) assert.ok(!isRight(right), JSON.stringify(right))
})

test('a table right never grants access to other tables, for any names', () => {
  const name = fc.oneof(
    fc.constantFrom(
      'users',
      'orders',
      'sales',
      'public',
      'gateway',
      'management',
      'query',
      'read',
      '*',
      'a.b',
      'tables.write',
    ),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }),
  )
  const table = fc.record({ schema: name, table: name, action: fc.constantFrom(...ACTIONS) })
  fc.assert(
    fc.property(table, table, (given, asked) => {
      const right = nameOfRight(given)
      if (!isRight(right) || right.startsWith('gateway.') || right.startsWith('*')) return
      const isSame = (Object.keys(given) as (keyof TableRight)[]).every((part) => given[part] === asked[part]) // the keys of the record
      assert.ok(
        isSame || !grantsTable([right], asked),
        `${right} reaches ${asked.schema} . ${asked.table} . ${asked.action}`,
      )
    }),
    { numRuns: 3_000 },
  )
})

/** The tables above and the fixed rights that a list of rights grants. */
function effectsOf(rights: readonly string[]): readonly string[] {
  const tables = [...TABLES, ['public', 'sales'] as const, ['public', 'Users'] as const].flatMap(
    ([schema, table]) =>
      ACTIONS.filter((action) => grantsTable(rights, { schema, table, action })).map(
        (action) => `${schema}.${table} ${action}`,
      ),
  )
  const names = Object.keys(FIXED_RIGHTS) as (keyof typeof FIXED_RIGHTS)[] // the keys of the object above
  const fixed = [true, false].flatMap((hasPolicies) =>
    names
      // They are rights to every table.
      .filter((name) => !['gateway.read', 'gateway.write', 'gateway.delete'].includes(name))
      .filter((name) => grantsFixed(rights, name, { isBound: true, hasPolicies }))
      .map((name) => `${name} ${hasPolicies}`),
  )
  return [...tables, ...fixed]
}

test('rights cover another right when, and only when, they grant all of its effects', () => {
  const right = fc.constantFrom(...Object.keys(GRANTS).filter(isRight), ...Object.keys(FIXED_RIGHTS))
  fc.assert(
    fc.property(fc.array(right, { maxLength: 5 }), right, (held, other) => {
      const own = new Set(effectsOf(held))
      assert.equal(
        coversRight(held, other),
        effectsOf([other]).every((effect) => own.has(effect)),
        `${held} and ${other}`,
      )
    }),
    { numRuns: 5_000 },
  )
})

test('the list of every right covers each right, and no wildcard covers the list', () => {
  for (const right of [...Object.keys(FIXED_RIGHTS), 'users.*', 'sales.orders.read', '*', 'gateway.*'])
    assert.ok(coversRight(EVERY_RIGHT, right), right)
  assert.ok(!EVERY_RIGHT.every((right) => coversRight(['*'], right)))
  assert.ok(!coversRight(['users.read'], 'customers.read'))
  assert.ok(!coversRight(['users.*'], '*.read'))
})
