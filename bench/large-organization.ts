/**
 * A control database with 1,000,000 users and 100,000 members in one organization: the time and the plan of each statement that reads
 * them (issue: organizations and administration). `node bench/large-organization.ts postgres://superuser@host/postgres [users] [members]`
 * creates a database on that server and drops it in the end. It takes a few minutes.
 */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { migrate } from '#kernel/db/migrate.ts'
import { dropDatabase, withClient } from '#test/database.ts'
import { fill, idOf, LARGE } from '#test/scale/fill.ts'

const [server = '', users = '1000000', members = '100000'] = process.argv.slice(2)
const name = `gatehouse_scale_${randomBytes(4).toString('hex')}`
const url = Object.assign(new URL(server), { pathname: `/${name}` }).href

const USER = idOf(1, '77777')
const ORGANIZATION = idOf(7, '1')

/** What the endpoints run, with the values of one request. */
const STATEMENTS: Readonly<Record<string, string>> = {
  'get-session, get-active-member, has-permission: the session with user and role': `
    select s.*, u.*, m.role from service.session s join service."user" u on u.id = s.user_id
      left join service.member m on m.organization_id = s.active_organization_id and m.user_id = s.user_id
      where s.token_hash = sha256(convert_to('s77777', 'UTF8'))`,
  'get-active-member, set-active: the membership': `
    select o.*, m.* from service.organization o join service.member m on m.organization_id = o.id and m.user_id = ${USER}
      where o.id = ${ORGANIZATION}`,
  'set-active by slug': `
    select o.*, m.* from service.organization o join service.member m on m.organization_id = o.id and m.user_id = ${USER}
      where o.slug = '${LARGE}'`,
  'set-active: the session': `update service.session set active_organization_id = ${ORGANIZATION} where id = ${idOf(3, '77777')}`,
  'list-members: the first page': `
    select m.*, u.name, u.email, u.image from service.member m join service."user" u on u.id = m.user_id
      where m.organization_id = ${ORGANIZATION} order by m.created_at, m.id limit 100`,
  'list-users: a filtered page': `
    select * from service."user" where role collate "C" = 'admin' order by created_at desc, id desc limit 10`,
  'list-users: a page of a prefix': `
    select * from service."user" where email collate "C" like 'user-777%' and email collate "C" >= 'user-777'
      and email collate "C" < 'user-777\u{10ffff}' order by email collate "C", id limit 100`,
  'list-users: a filtered page of the banned':
    'select * from service."user" where banned = true order by created_at, id limit 101',
  'list-users: the number of the banned, to 10,001':
    'select count(*) from (select from service."user" where banned = true limit 10001) as counted',
  'list-users: a part of a name': `
    select * from (select * from service."user" where lower(name) collate "C" like '%777%' offset 0) as fitting order by id limit 101`,
  'list-audit-events of a user': `
    select * from service.audit_event where target_id = ${USER}::text order by id desc limit 101`,
  'ban, remove-user, set-role: is there another admin': `
    select id from service."user" where ('admin' = any (string_to_array(role, ',')) or id = any ('{}'::uuid[]))
      and (banned = false or ban_expires <= now()) and id != ${USER} limit 1`,
  'leave: is there another owner': `
    select from service.member where organization_id = ${ORGANIZATION} and user_id != ${USER}
      and 'owner' = any (string_to_array(role, ',')) limit 1`,
}

await withClient(server, (client) => client.query(`create database ${pg.escapeIdentifier(name)}`))
try {
  await migrate(url)
  const began = performance.now()
  await fill(url, { users: Number(users), members: Number(members) })
  console.log(
    `filled ${users} users and ${members} members in ${Math.round((performance.now() - began) / 1_000)} s`,
  )
  await withClient(url, async (client) => {
    for (const [says, text] of Object.entries(STATEMENTS)) {
      await client.query('begin')
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(
        `explain (analyze, buffers, costs off) ${text}`,
      )
      await client.query('rollback')
      console.log(`\n## ${says}\n${rows.map((row) => row['QUERY PLAN']).join('\n')}`)
    }
  })
} finally {
  await withClient(server, (client) => dropDatabase(client, name))
}
