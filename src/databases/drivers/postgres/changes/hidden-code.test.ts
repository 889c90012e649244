import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { feedDatabase, feedOn, publicTable } from '#test/changes.ts'
import { testServerUrl, withClient } from '#test/database.ts'

const { url, sql } = await feedDatabase()
const suffix = randomBytes(4).toString('hex')
const [anonymousRole, signedInRole] = [`anon_${suffix}`, `member_${suffix}`]
const onServer = (text: string) => withClient(testServerUrl(), (client) => client.query(text))
await onServer(`create role ${anonymousRole} nologin; create role ${signedInRole} nologin;
  grant ${anonymousRole}, ${signedInRole} to "${new URL(url).username}"`)
const { feed, live, ended } = feedOn(url, { rowLevelSecurity: { anonymousRole, signedInRole } })
// The database is dropped by then.
after(() => onServer(`drop role ${anonymousRole}; drop role ${signedInRole}`))
const CLAIM = `current_setting('request.claims', true)::json ->> 'user_id'`
await sql(`create type region as enum ('north', 'south'); create table place (who text primary key, region region);
  create function region_of(text) returns region language sql stable as $$ select region from public.place where who = $1 $$;
  create cast (text as region) with function region_of(text) as assignment;
  create function uuid_is(uuid, text) returns boolean language sql stable as $$ select now()::text > $2 $$;
  create operator = (function = uuid_is, leftarg = uuid, rightarg = text)`)

for (const [name, what, result, body] of [
  ['one', 'a cast of its result', 'region', `select ${CLAIM}`],
  ['two', 'an operator of NULLIF', 'uuid', `select nullif((${CLAIM})::uuid, 'x'::text)`],
] as const)
  test(`a function is not seen through that runs code of users by ${what}`, async () => {
    await sql(`create function its_${name}() returns ${result} language sql stable as $$ ${body} $$;
      create table ${name} (id int primary key, own ${result}); alter table ${name} enable row level security;
      create policy reading on ${name} to ${signedInRole} using (own = its_${name}())`)
    await live(name)
    assert.equal(await feed.policies(publicTable(name)), 'not_live')
    await ended(name)
  })
