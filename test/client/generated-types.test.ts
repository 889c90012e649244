import assert from 'node:assert/strict'
import path from 'node:path'
import { before, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { createTypeScriptFolder } from '#test/typescript-folder.ts'

const CLIENT = path.resolve(import.meta.dirname, '../../packages/client/src/client.ts')

const t = await testService()
const folder = await createTypeScriptFolder()

before(() =>
  withClient(t.clientUrl, (client) =>
    client.query(`
      create type mood as enum ('good', 'bad');
      create table owner (id int primary key, name text not null, felt mood);
      create table account (id int8 primary key, balance numeric not null, tags text[] not null default '{}',
        owner_id int not null references owner, "second owner" int references owner);
      create view rich as select id, balance from account where balance > 10;
      create function total(of_owner int, at_least numeric default 0) returns numeric language sql as
        'select sum(balance) from account where owner_id = of_owner and balance >= at_least';
      create function accounts_of(owner int) returns setof account language sql as 'select * from account where owner_id = owner';
      insert into owner values (1, 'Ada', 'good');
      insert into account values (9007199254740993, 12.50, '{a}', 1, null), (2, 3, '{}', 1, 1)`),
  ),
)

const program = (url: string, key: string): string => `
import assert from 'node:assert/strict'
import { createClient } from ${JSON.stringify(CLIENT)}
import type { Database } from './database.ts'

const same = <A, B>(..._proof: Same<A, B> extends true ? [] : [never]): void => {}
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

const db = createClient<Database>({ url: ${JSON.stringify(url)}, key: ${JSON.stringify(key)}, numbers: 'exact' })

const rows = await db.from('account')
  .select({ id: true, balance: true, owner_id: { name: true, felt: true }, 'second owner': { name: true } })
  .where({ id: [9007199254740993n, 2] }).order({ id: 'asc' }).orThrow()
same<typeof rows, {
  id: number | bigint
  balance: number | bigint | string
  owner_id: { name: string; felt: 'good' | 'bad' | null }
  'second owner': { name: string } | null
}[]>()
assert.deepEqual(rows, [
  { id: 2, balance: 3, owner_id: { name: 'Ada', felt: 'good' }, 'second owner': { name: 'Ada' } },
  { id: 9007199254740993n, balance: '12.50', owner_id: { name: 'Ada', felt: 'good' }, 'second owner': null },
])

const accounts = await db.from('owner').select('name, account!owner_id(id, tags)').single().orThrow()
same<typeof accounts, { name: string; account: { id: number | bigint; tags: string[] }[] }>()
assert.equal(accounts.account.length, 2)

const rich = await db.from('rich').select().orThrow()
same<typeof rich, { id: number | bigint | null; balance: number | bigint | string | null }[]>()
assert.deepEqual(rich, [{ id: 9007199254740993n, balance: '12.50' }])

const sum = await db.rpc('total', { of_owner: 1 }).value().orThrow()
same<typeof sum, number | bigint | string>()
assert.equal(sum, '15.50')

const called = await db.rpc('accounts_of', { owner: 1 }).select('id').order({ id: 'asc' }).orThrow()
same<typeof called, { id: number | bigint }[]>()
assert.deepEqual(called, [{ id: 2 }, { id: 9007199254740993n }])

const written = await db.from('account').insert({ id: 2n ** 60n, balance: '1.20', owner_id: 1 }).select('id, balance').single().orThrow()
same<typeof written, { id: number | bigint; balance: number | bigint | string }>()
assert.deepEqual(written, { id: 2n ** 60n, balance: '1.20' })
`

test('a program with the types that the service writes compiles, and gets what its types say', async () => {
  const types = await t.admin.get('/schema/types?shape=supabase&numbers=exact', {
    headers: { 'x-service-client': 'default' },
  })
  assert.equal(types.status, 200, types.text)
  const { apiKey } = await t.key(['gateway.read', 'gateway.write', 'gateway.rpc.execute'])
  await folder.write('database.ts', types.text)
  await folder.write('program.ts', program(t.url, apiKey))
  await folder.compile()
  await folder.run('program.ts')
})
