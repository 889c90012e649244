import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { GatewayCaller } from './caller/caller.ts'
import { joinInserts, type Prepared, prepareAgain } from './prepare.ts'

/** As far as these checks read it: nothing of it reaches a database. */
const callerOf = (more: object): GatewayCaller =>
  ({
    client: { name: 'shop', rowLevelSecurity: undefined },
    backend: {},
    persona: undefined,
    grant: { kind: 'none' },
    ...more,
  }) as unknown as GatewayCaller

const insertInto = (table: string, more: object = {}): Prepared<'insert'> =>
  ({
    kind: 'insert',
    caller: callerOf(more),
    plan: { rows: [{ table }], request: { table: { schema: 'public', table } } },
  }) as unknown as Prepared<'insert'> // the members that joining reads

test('on a client with row-level security nothing is prepared for a caller without a persona', async () => {
  const client = { name: 'shop', rowLevelSecurity: { anonymousRole: 'anon', signedInRole: 'authenticated' } }
  const insert = insertInto('book', { client })
  await assert.rejects(prepareAgain(insert, insert.plan.request), /A caller of shop has no persona/)
})

test('inserts are joined only into one table, as one persona, on one client', () => {
  const book = insertInto('book')
  assert.equal(joinInserts(book, [insertInto('book')]).plan.rows.length, 2)
  const persona = { role: 'anon', claims: '{}' }
  const client = { name: 'other', rowLevelSecurity: undefined }
  for (const other of [insertInto('author'), insertInto('book', { persona }), insertInto('book', { client })])
    assert.throws(() => joinInserts(book, [insertInto('book'), other]), /Inserts into several tables/)
})
