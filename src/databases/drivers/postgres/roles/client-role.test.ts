import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import type { DriverContext } from '#databases/drivers/driver.ts'
import { createPostgresDriver } from '#databases/drivers/postgres/driver.ts'
import { Failure } from '#kernel/errors.ts'
import { testDatabase, testServerUrl, withClient } from '#test/database.ts'

/** A database with the names of a control database, and a client's database. */
const [control, plain] = [await testDatabase(), await testDatabase()]
const suffix = randomBytes(4).toString('hex')
const READS = 'can read the control schema'
const RIGHTS = 'has rights on the control schema'
const THERE = 'is in the control database'
const CREATEROLE = 'CREATEROLE, which before PostgreSQL 16 gives every other right'

const onServer = (text: string) =>
  withClient(testServerUrl(), async (client) => (await client.query(text)).rows)
const [{ version, superuser }] = await onServer(
  `select current_setting('server_version_num')::int / 10000 as version, rolsuper as superuser from pg_roles where rolname = current_user`,
)

type Case = {
  /** After `create role NAME`; ROLE is the name, GROUP another role. */
  readonly attributes?: string
  readonly grants?: readonly string[]
  /** Statements as the server's own role, in the database of the test or in another. */
  readonly server?: readonly string[]
  readonly inControl?: readonly string[]
  readonly elsewhere?: readonly string[]
  readonly since?: number
  readonly needsSuperuser?: boolean
}

const CASES: Readonly<Record<string, Case>> = {
  'nothing but to log in': {},
  'usage of the schema': { grants: ['grant usage on schema service to ROLE'] },
  'a column to read': { grants: ['grant select (id) on service.session to ROLE'], inControl: [READS] },
  'a table to read': { grants: ['grant select on service.api_key to ROLE'], inControl: [READS] },
  'a table of the queue to read': {
    grants: ['grant select on service_jobs.job to ROLE'],
    inControl: [READS],
  },
  'a view to read': { grants: ['grant select on service.seen to ROLE'], inControl: [READS] },
  'a table to insert into': { grants: ['grant insert on service.session to ROLE'], inControl: [RIGHTS] },
  'a column to update': { grants: ['grant update (id) on service.session to ROLE'], inControl: [RIGHTS] },
  'a table to delete from': { grants: ['grant delete on service.session to ROLE'], inControl: [RIGHTS] },
  'a table to empty': { grants: ['grant truncate on service.session to ROLE'], inControl: [RIGHTS] },
  'a table to refer to': { grants: ['grant references on service.session to ROLE'], inControl: [RIGHTS] },
  'a column to refer to': {
    grants: ['grant references (id) on service.session to ROLE'],
    inControl: [RIGHTS],
  },
  'a table to put triggers on': { grants: ['grant trigger on service.session to ROLE'], inControl: [RIGHTS] },
  'a table to vacuum': {
    grants: ['grant maintain on service.session to ROLE'],
    inControl: [RIGHTS],
    since: 17,
  },
  'a sequence to use': { grants: ['grant usage on sequence service.counted to ROLE'], inControl: [RIGHTS] },
  'the schema to make things in': { grants: ['grant create on schema service to ROLE'], inControl: [RIGHTS] },
  'a right of everybody': { grants: ['grant insert on service.session to public'], inControl: [RIGHTS] },
  'a right by membership': {
    grants: ['grant select on service.session to GROUP'],
    server: ['grant GROUP to ROLE'],
    inControl: [READS],
  },
  'a right by membership that it neither inherits nor sets': {
    grants: ['grant select on service.session to GROUP'],
    server: ['grant GROUP to ROLE with inherit false, set false, admin true'],
    since: 16,
    inControl: [READS],
  },
  'a right by membership that it only sets': {
    grants: ['grant select on service.session to GROUP'],
    server: ['grant GROUP to ROLE with inherit false, set true'],
    since: 16,
    inControl: [READS],
  },
  'a right that its login has and its present role has not': {
    grants: ['grant select on service.session to ROLE'],
    server: ['grant GROUP to ROLE', 'alter role ROLE set role = GROUP'],
    inControl: [READS],
  },
  'everything to read': {
    server: ['grant pg_read_all_data to ROLE'],
    inControl: [READS],
    needsSuperuser: true,
  },
  'everything to write': {
    server: ['grant pg_write_all_data to ROLE'],
    inControl: [RIGHTS],
    needsSuperuser: true,
  },
  createrole: {
    attributes: 'createrole',
    ...(version < 16 ? { inControl: [CREATEROLE], elsewhere: [CREATEROLE] } : {}),
  },
  'a member of one with createrole': {
    server: ['alter role GROUP createrole', 'grant GROUP to ROLE'],
    ...(version < 16 ? { inControl: [CREATEROLE], elsewhere: [CREATEROLE] } : {}),
  },
  replication: {
    attributes: 'replication',
    needsSuperuser: true,
    inControl: ['REPLICATION'],
    elsewhere: ['REPLICATION'],
  },
  'a member of one with replication': {
    server: ['alter role GROUP replication', 'grant GROUP to ROLE'],
    needsSuperuser: true,
    inControl: ['REPLICATION'],
    elsewhere: ['REPLICATION'],
  },
  'files of the server': {
    server: ['grant pg_read_server_files to ROLE'],
    needsSuperuser: true,
    inControl: ['pg_read_server_files'],
    elsewhere: ['pg_read_server_files'],
  },
  'a superuser that has taken another role': {
    attributes: 'superuser',
    server: ['grant GROUP to ROLE', 'alter role ROLE set role = GROUP'],
    needsSuperuser: true,
    elsewhere: [
      'superuser',
      'pg_execute_server_program',
      'pg_read_server_files',
      'pg_write_server_files',
      ...(version < 16 ? [CREATEROLE] : []),
      'REPLICATION',
    ],
    inControl: [
      'superuser',
      'pg_execute_server_program',
      'pg_read_server_files',
      'pg_write_server_files',
      ...(version < 16 ? [CREATEROLE] : []),
      'REPLICATION',
      READS,
    ],
  },
}

before(() =>
  withClient(control.url, (client) =>
    client.query(`create schema service; create schema service_jobs; create table service.session (id int, token text);
      create table service.api_key (id int); create table service_jobs.job (id int); create view service.seen as select 1 as one;
      create sequence service.counted`),
  ),
)
after(async () => {
  await control.drop()
  await plain.drop()
})

/** Reasons why a driver for this role is refused; empty when it is accepted. */
async function reasonsAgainst(
  url: string,
  allowServerRights = false,
  controlServer?: DriverContext['controlServer'],
): Promise<unknown> {
  const driver = createPostgresDriver({
    url,
    allowServerRights,
    ...(controlServer && { controlServer }),
    maxConnections: 1,
    sqlConnections: 1,
    maxWaiting: 1,
    maxRows: 10,
    answerBytes: 33_554_432,
    connectTimeout: 5_000,
    statementTimeout: 5_000,
    idleTimeout: 5_000,
    applicationName: 'role',
  })
  try {
    await driver.probe()
    return []
  } catch (error) {
    assert.ok(error instanceof Failure && error.code === 'unsafe_client', String(error))
    return error.details?.reasons
  } finally {
    await driver.close()
  }
}

test('a role is refused for rights on the server or on the control schema, direct or by membership', async () => {
  const possible = Object.entries(CASES).filter(
    ([, { since = 0, needsSuperuser }]) => version >= since && (superuser || !needsSuperuser),
  )
  for (const [index, [name, one]] of possible.entries()) {
    const [role, group] = [`vetted_${index}_${suffix}`, `vetted_group_${index}_${suffix}`]
    const named = (text: string) => text.replaceAll('ROLE', role).replaceAll('GROUP', group)
    const { attributes = '', grants = [], server = [], inControl = [], elsewhere = [] } = one
    await onServer(`create role ${role} login password 'pw' ${attributes}; create role ${group}`)
    try {
      for (const text of server) await onServer(named(text))
      await withClient(control.url, async (client) => {
        for (const text of grants) await client.query(named(text))
      })
      const as = (url: string) => Object.assign(new URL(url), { username: role, password: 'pw' }).href
      const there = inControl.some((reason) => reason === READS || reason === RIGHTS) ? [] : [THERE]
      const all = [...inControl, ...there]
      assert.deepEqual(await reasonsAgainst(as(control.url)), all, `${name}, in the control database`)
      assert.deepEqual(await reasonsAgainst(as(plain.url)), elsewhere, `${name}, in a database of its own`)
      const lifted = all.filter((reason) => reason === READS || reason === RIGHTS || reason === THERE)
      assert.deepEqual(await reasonsAgainst(as(control.url), true), lifted, `${name}, in unsafe_clients`)
    } finally {
      await withClient(control.url, (client) =>
        client.query(`revoke all on service.session from public; revoke all on all tables in schema service, service_jobs from ${role}, ${group};
          revoke all (id) on service.session from ${role}; revoke all on all sequences in schema service from ${role};
          revoke all on schema service from ${role}`),
      )
      await onServer(`drop role ${role}; drop role ${group}`)
    }
  }
})

test('objects of the database that shadow those of the system do not affect the check of its role', async () => {
  const role = `hostile_${suffix}`
  await onServer(`create role ${role} login password 'pw'`)
  await withClient(control.url, (client) =>
    client.query(`grant select on service.session to ${role}; create schema hostile; grant usage on schema hostile to ${role};
      create function hostile.pg_has_role(name, oid, text) returns boolean language sql as 'select false';
      create function hostile.has_any_column_privilege(oid, oid, text) returns boolean language sql as 'select false';
      create function hostile.never(name, name) returns boolean language sql as 'select false';
      create operator hostile.= (leftarg = name, rightarg = name, function = hostile.never);
      create view hostile.pg_class as select * from pg_catalog.pg_class where false`),
  )
  await onServer(`alter role ${role} set search_path = hostile, pg_catalog`)
  const url = Object.assign(new URL(control.url), { username: role, password: 'pw' }).href
  try {
    assert.deepEqual(await reasonsAgainst(url), [READS])
  } finally {
    await withClient(control.url, (client) =>
      client.query(`revoke all on service.session from ${role}; drop schema hostile cascade`),
    )
    await onServer(`drop role ${role}`)
  }
})

test('the role of the control database, and roles that may become it, are refused for other databases of its server', async () => {
  const [holder, member, stranger] = ['holder', 'member', 'stranger'].map((name) => `${name}_${suffix}`)
  await onServer(`create role ${holder} login password 'pw'; create role ${member} login password 'pw';
    create role ${stranger} login password 'pw'; grant ${holder} to ${member}`)
  const [{ started }] = await onServer(
    'select extract(epoch from pg_postmaster_start_time())::text as started',
  )
  const there = async () => ({ startedAt: started, roles: [String(holder)] })
  const elsewhere = async () => ({ startedAt: '1000000000.000001', roles: [String(holder)] })
  const as = (role: unknown) => Object.assign(new URL(plain.url), { username: role, password: 'pw' }).href
  const OWNS = 'is the role of the control database'
  try {
    assert.deepEqual(await reasonsAgainst(as(holder), false, there), [OWNS])
    assert.deepEqual(await reasonsAgainst(as(member), false, there), [OWNS])
    assert.deepEqual(await reasonsAgainst(as(stranger), false, there), [])
    assert.deepEqual(
      await reasonsAgainst(as(holder), false, elsewhere),
      [],
      'a role of that name on another server',
    )
    assert.deepEqual(await reasonsAgainst(as(holder), false, async () => undefined), [])
    assert.deepEqual(await reasonsAgainst(as(holder), true, there), [], 'in unsafe_clients')
  } finally {
    await onServer(`drop role ${holder}, ${member}, ${stranger}`)
  }
})
