import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { feedDatabase, feedOn, publicTable } from '#test/changes.ts'
import { testServerUrl, withClient } from '#test/database.ts'

const { url, sql } = await feedDatabase()
const { driver, live, ended } = feedOn(url)
const role = `lesser_${randomBytes(4).toString('hex')}`
const me = new URL(url).username
const onServer = (text: string) => withClient(testServerUrl(), (client) => client.query(text))
await onServer(`create role ${role} login password 'x'; grant ${role} to "${me}"`)
await sql(`grant create, usage on schema public to ${role}`)
// The database is dropped by then.
after(() => onServer(`drop role ${role}`))

test('a role that a client is a member of does not get its feed, whose triggers would run as the client', async () => {
  const address = new URL(url)
  address.username = role
  address.password = 'x'
  await sql(
    `create table mine (id int primary key); create table of_lesser (id int primary key); alter table of_lesser owner to ${role}`,
  )
  const lesser = feedOn(address.href)
  await lesser.live('of_lesser')
  await assert.rejects(live('mine'), { code: 'permission_denied', status: 403 })
  await lesser.ended('of_lesser')
  await live('mine')
  const [{ name }] = await sql(
    `select p.proname as name from pg_trigger t join pg_proc p on p.oid = tgfoid where tgrelid = 'mine'::regclass limit 1`,
  )
  await ended('mine')
  await lesser.driver.management.run([
    `create function public.${name}() returns trigger language plpgsql as 'begin return null; end'`,
  ])
  await assert.rejects(live('mine'), { code: 'permission_denied' }, 'a function of the same name')
  await sql(`drop function ${name}`)
  await lesser.driver.close()
})

test('nothing of the feed is given to others by default privileges', async () => {
  await sql(`alter default privileges in schema public grant all on tables to ${role}; alter default privileges in schema public grant all on sequences to public;
    alter default privileges in schema public grant all on functions to ${role}`)
  await live('mine')
  const given = await sql(`select o.name, a.privilege_type from (
      select relname::text as name, relowner as owner, relacl as acl from pg_class where relname like 'service_changes%'
      union all select proname, proowner, coalesce(proacl, acldefault('f', proowner)) from pg_proc where proname like 'service_changes%'
    ) o cross join aclexplode(o.acl) a where a.grantee <> o.owner`)
  assert.deepEqual(given, [])
  assert.deepEqual(await driver.changes?.tables(), [{ table: publicTable('mine'), key: ['id'] }])
  await ended('mine')
})
