import assert from 'node:assert/strict'
import { test } from 'node:test'
import { requireAllowed } from '#databases/drivers/scylla/cql-text.ts'

const verdict = (text: string, readOnly = false): string => {
  try {
    requireAllowed(text, readOnly)
    return 'fine'
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'thrown'
  }
}

test('a statement is known by its first word, after any comments', () => {
  for (const text of [
    'select * from t',
    '  -- x\n select 1 from t',
    '// delete\nSELECT a FROM t',
    '/* update; */ select a from t;',
    'insert into t (a) values (1)',
    'BEGIN BATCH insert into t (a) values (1); APPLY BATCH',
    'create table t (a int primary key)',
    'create or replace function f (a int) called on null input returns int language java as $$ return 1; $$',
    'drop materialized view v',
  ])
    assert.equal(verdict(text), 'fine', text)
  for (const text of [
    'use other',
    'grant all on all keyspaces to me',
    'revoke select on t from me',
    'create role r with superuser = true',
    'CREATE USER r',
    'alter role r with password = $$x$$',
    'drop role r',
    'list roles',
    'describe keyspaces',
    '"select" * from t',
    '; select 1',
  ])
    assert.equal(verdict(text), 'not_supported', text)
  for (const text of ['', '  ', '-- select', '/* select * from t', "'select'"])
    assert.equal(verdict(text), 'invalid_sql', text)
})

test('with only the right to read, a statement must be a select', () => {
  assert.equal(verdict('select a from t', true), 'fine')
  for (const text of [
    'insert into t (a) values (1)',
    'begin batch apply batch',
    '/* select */ truncate t',
    'use k',
  ])
    assert.equal(verdict(text, true), 'read_only', text)
})

test('the keyspaces of the server cannot be named', () => {
  for (const text of [
    'select * from system_auth.roles',
    'select * from SYSTEM_AUTH . roles',
    'select * from "system_auth"."roles"',
    'select * from /* x */ system/* y */./* z */local',
    'select * from system_schema.tables',
    'insert into system_auth.roles (role) values ($$x$$)',
    'begin batch insert into t (a) values (1); delete from system_auth.roles where role = $$x$$; apply batch',
    'drop keyspace system_auth',
    'alter keyspace if exists "system_traces" with replication = {}',
    'drop table system.local',
  ])
    assert.equal(verdict(text), 'permission_denied', text)
  for (const text of [
    `select * from t where a = 'system_auth.roles'`,
    'select * from t where a = $$system.local$$',
    'select system_id, "system" from t -- system.local',
    'select * from systematic.t',
  ])
    assert.equal(verdict(text), 'fine', text)
})

test('lists of in are counted in linear time, in all forms', () => {
  const lookUps = (text: string) => requireAllowed(text, false).lookUps
  assert.equal(lookUps('select a from t where a in (1, 2, 3) and b IN (4, 5)'), 6)
  assert.equal(lookUps('select a from t where (a, b) in ((1, 2), (3, 4), (?, ?))'), 3)
  assert.equal(lookUps(`select a from t where a in ('x, (y', /* , */ [1, 2], f(3, 4))`), 3)
  assert.equal(lookUps('select a, b, f(a, b) from t where "in" = (1) and a = {1, 2}'), 1)
  const two = 'delete from t where a in (1, 2)'
  assert.equal(lookUps(`begin batch ${two}; ${two} and b in (1, 2) apply batch`), 4)
  const took = (text: string) => {
    const began = process.cpuUsage()
    lookUps(text)
    return process.cpuUsage(began).user / 1_000
  }
  for (const part of ['in (', 'word ', 'in (1,2) '])
    assert.ok(took(`select ${part.repeat(20_000)}`) < 2_000, part)
})
