import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import { defaultConfig } from '#kernel/config/config.ts'
import { builtInNames } from '#kernel/db/built-in-databases.ts'
import { secureRandom } from '#kernel/random.ts'
import { createSecrets, newSecret } from '#kernel/secrets.ts'
import { dropInstallations, testDatabase, testServerUrl } from '#test/database.ts'
import { query } from '#test/embedded.ts'
import { openDatabases, openLogging } from './open-databases.ts'

const server = testServerUrl()
const id = pg.escapeIdentifier
const [{ superuser = false } = {}] = await query<{ superuser: boolean }>(
  server,
  'select rolsuper as superuser from pg_roles where rolname = current_user',
)
const AS_SUPERUSER = { skip: !superuser && 'the role of TEST_DATABASE_URL is no superuser' }

/** Databases and roles that a test has created besides its control databases. */
const controls: string[] = []
const makers: string[] = []
after(async () => {
  await dropInstallations(...controls)
  for (const maker of makers) await query(server, `drop role ${id(maker)}`)
})

/** An installation on the server of the test run. `isMaker`: its role has CREATEDB and CREATEROLE, and is no superuser. */
async function installation({ isMaker = false } = {}) {
  const { name } = await testDatabase()
  controls.push(name)
  const url = Object.assign(new URL(server), { pathname: `/${name}` })
  if (isMaker) {
    const maker = `${name}_maker`
    makers.push(maker)
    await query(server, `create role ${id(maker)} login createdb createrole password 'maker'`)
    await query(server, `alter database ${id(name)} owner to ${id(maker)}`)
    Object.assign(url, { username: maker, password: 'maker' })
  }
  const secrets = createSecrets(newSecret(secureRandom), secureRandom)
  const config = defaultConfig({ database: { url: url.href } })
  const open = ({ createsMissing = true } = {}) =>
    openDatabases({ config, secrets, mismatch: '', random: secureRandom, report: () => {}, createsMissing })
  return { open, config, names: builtInNames(name) }
}

test('callers cannot alter the built-in database that they use, and can create everything in it', async () => {
  const { open, names } = await installation()
  const url = (await open()).builtIn.default ?? ''
  for (const change of ['set role = none', 'connection limit 0', 'is_template true', 'rename to mine'])
    await assert.rejects(query(url, `alter database ${id(names.default)} ${change}`), { code: '42501' })
  await assert.rejects(query(url, `drop owned by ${id(names.owner)}`), { code: '42501' })
  await assert.rejects(query(url, `set role ${id(names.owner)}`), { code: '42501' })
  await query(
    url,
    `create schema more; create table public.mine (); create temporary table brief (); create extension citext;
     grant usage on schema public to ${id(names.anonymous)}; drop schema public cascade; create schema public`,
  )
})

test('what callers have changed of their own role is undone by the next start, which names it', async () => {
  const { open, config, names } = await installation()
  const first = await open()
  await openLogging(config, first)
  const [url, reader] = [first.builtIn.default ?? '', first.logging?.readerUrl ?? '']
  assert.deepEqual(first.repairs, [])
  await query(
    url,
    `alter role current_user set role = ${id(names.anonymous)};
     alter role current_user in database ${id(names.default)} set local_preload_libraries = 'nothing';
     alter role current_user set default_transaction_read_only = on;
     alter role current_user password null`,
  )
  await query(
    reader,
    `alter role current_user set local_preload_libraries = 'nothing'; alter role current_user password 'mine'`,
  )
  for (const broken of [url, reader]) await assert.rejects(query(broken, 'select'), { code: '28P01' })
  const { repairs } = await open()
  assert.deepEqual(repairs.toSorted(), [
    `The password of role ${names.default} had been changed, and was set again`,
    `The password of role ${names.reader} had been changed, and was set again`,
    `The settings of role ${names.default} in database ${names.default} were removed: local_preload_libraries`,
    `The settings of role ${names.default} were removed: role, default_transaction_read_only`,
    `The settings of role ${names.reader} were removed: local_preload_libraries`,
  ])
  await query(url, 'create table public.mine ()')
  await query(reader, 'select')
  assert.deepEqual((await open()).repairs, [])
})

test('commands that create nothing repair nothing', async () => {
  const { open } = await installation()
  const url = (await open()).builtIn.default ?? ''
  await query(url, 'alter role current_user set default_transaction_read_only = on')
  assert.deepEqual((await open({ createsMissing: false })).repairs, [])
  assert.deepEqual(await query(url, 'show default_transaction_read_only'), [
    { default_transaction_read_only: 'on' },
  ])
})

for (const isMaker of [false, true])
  test(
    `a database that belongs to its callers is taken over by ${isMaker ? 'a role with CREATEROLE' : 'a superuser'}, and nothing of theirs runs`,
    AS_SUPERUSER,
    async () => {
      const { open, names } = await installation({ isMaker })
      const url = (await open()).builtIn.default ?? ''
      const database = id(names.default)
      const onDatabase = Object.assign(new URL(server), { pathname: `/${names.default}` }).href
      // As earlier versions have made it.
      await query(server, `alter database ${database} owner to ${database}`)
      await query(onDatabase, 'alter schema public owner to pg_database_owner')
      await query(
        url,
        `create schema evil; create table evil.ran_as (name text); grant all on schema evil to public; grant all on evil.ran_as to public;
         create function evil.note() returns void language sql as 'insert into evil.ran_as values (current_user)';
         create function evil.pg_get_userbyid(oid) returns name language sql as $$ select evil.note(); select 'x'::name $$;
         create function evil.is_equal(name, name) returns boolean language sql as 'select evil.note(); select true';
         create operator evil.= (leftarg = name, rightarg = name, function = evil.is_equal);
         alter database ${database} set search_path = evil, pg_catalog;
         alter database ${database} set role = ${database};
         alter database ${database} set local_preload_libraries = 'nothing';
         alter database ${database} set default_transaction_read_only = on;
         alter database ${database} set statement_timeout = 1;
         alter database ${database} with connection limit 0 is_template true;
         revoke all on database ${database} from current_user`,
      )
      const { repairs } = await open()
      assert.deepEqual(repairs, [
        `The settings of database ${names.default} were removed: search_path, role, local_preload_libraries, default_transaction_read_only, statement_timeout`,
      ])
      await assert.rejects(query(url, `alter database ${database} set role = none`), { code: '42501' })
      await query(url, 'create table public.mine ()')
      assert.deepEqual(await query(url, 'select * from evil.ran_as'), [])
      const [facts] = await query(
        server,
        `select pg_get_userbyid(datdba) as owner, datconnlimit as limit, datistemplate as template
           from pg_database where datname = '${names.default}'`,
      )
      assert.deepEqual(facts, { owner: names.owner, limit: -1, template: false })
      assert.deepEqual((await open()).repairs, [])
      // Settings that the operator gives the database from now on stay.
      await query(server, `alter database ${database} set timezone = 'Europe/Berlin'`)
      assert.deepEqual((await open()).repairs, [])
      assert.deepEqual(await query(url, 'show timezone'), [{ TimeZone: 'Europe/Berlin' }])
    },
  )
