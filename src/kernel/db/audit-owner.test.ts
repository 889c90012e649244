import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import { dropInstallations, testServerUrl, withClient } from '#test/database.ts'
import { query } from '#test/embedded.ts'
import { secureRandom, uuidv7 } from '../random.ts'
import { separateAuditOwner } from './audit-owner.ts'
import { builtInNames } from './built-in-databases.ts'
import { migrate } from './migrate.ts'

const server = testServerUrl()
const id = pg.escapeIdentifier

test('the audit trail has an owner of its own, and the control role can only add to it', async () => {
  const name = `gatehouse_test_${secureRandom(4).toString('hex')}`
  const control = `${name}_login`
  after(async () => {
    await dropInstallations(name)
    await query(server, `drop role ${id(control)}`)
  })
  await withClient(server, async (client) => {
    await client.query(`create role ${id(control)} login password 'x' createdb createrole`)
    await client.query(`create database ${id(name)} owner ${id(control)}`)
  })
  const url = Object.assign(new URL(server), { pathname: name, username: control, password: 'x' }).href
  await migrate(url)
  const owner = { role: builtInNames(name).auditOwner, installation: uuidv7(new Date(), secureRandom) }
  await separateAuditOwner(url, owner)
  await separateAuditOwner(url, owner)
  const event = (days: number) => `insert into service.audit_event
    select service.first_id_at(at), at, 'system', null, 'sign_in.failed', 'user', 'x', null, null, null, null, null, 'failure', 1, '{}'
      from (select now() - make_interval(days => ${days}) as at) as aged`
  await query(url, `${event(500)}; ${event(1)}`)
  await query(url, `${event(1)} on conflict (id) do update set count = audit_event.count + 1`)
  for (const statement of [
    'delete from service.audit_event',
    `begin; set local gatehouse.audit_pruning = 'on'; delete from service.audit_event`,
    'truncate service.audit_event',
    `update service.audit_event set actor_id = 'x'`,
    'update service.audit_event set count = count + 2',
    'alter table service.audit_event disable trigger all',
    'drop trigger audit_event_unchanged on service.audit_event',
    `create or replace function service.refuse_audit_change() returns trigger language sql as 'select null'`,
    `create or replace function service.first_id_at(at timestamptz) returns uuid language sql as 'select null::uuid'`,
    `set role ${id(owner.role)}`,
  ])
    await assert.rejects(query(url, statement), { code: '42501' }, statement)
  await query(url, `select service.prune_audit_events('400 days', 10)`)
  assert.equal((await query(url, 'select id from service.audit_event')).length, 2)
})
