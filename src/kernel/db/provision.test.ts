import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import pg from 'pg'
import { startEmbedded } from '#kernel/db/embedded.ts'
import { type Provision, provision } from '#kernel/db/provision.ts'
import { dropDatabase, testServerUrl, withClient } from '#test/database.ts'
import { newFolder, optionsFor, query } from '#test/embedded.ts'

const server = testServerUrl()
const id = pg.escapeIdentifier
const AS_SUPERUSER = { skip: !(await isSuperuser()) && 'the role of TEST_DATABASE_URL is no superuser' }

test('roles own their databases and can use them, and repeating the provisioning changes nothing', async (t) => {
  const wanted = wish(t, ['ada', 'ben'])
  await provision(server, wanted)
  await query(urlFor(wanted, 'ada'), 'create table public.kept as select 1 as one; create schema more')
  await provision(server, wanted)
  assert.deepEqual(await query(urlFor(wanted, 'ada'), 'table kept'), [{ one: 1 }])
  const [rights] = await query(
    urlFor(wanted, 'ada'),
    `select rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls as is_privileged
       from pg_roles where rolname = current_user`,
  )
  assert.deepEqual(rights, { is_privileged: false })
})

test('only its owner can connect to a database', async (t) => {
  const wanted = wish(t, ['ada', 'ben'])
  await provision(server, wanted)
  await query(urlFor(wanted, 'ada', 'ada'), 'select')
  await assert.rejects(query(urlFor(wanted, 'ben', 'ada'), 'select'), { code: '42501' })
})

test('several processes may provision the same databases at the same time', async (t) => {
  const wanted = wish(t, ['ada', 'ben'])
  await Promise.all(Array.from({ length: 6 }, () => provision(server, wanted)))
  await query(urlFor(wanted, 'ben'), 'select')
})

test('a lock held by another session is waited for with a report, and then refused with the session’s process id', async (t) => {
  const wanted = wish(t, ['ada'])
  const steps: string[] = []
  await withClient(server, async (client) => {
    await client.query(`select pg_advisory_lock(hashtextextended('gatehouse provision', 0))`)
    const waiting = provision(server, wanted, { report: (step) => steps.push(step), patience: 300 })
    await assert.rejects(waiting, /another session \(process \d+ of the server\) holds the provisioning lock/)
  })
  await provision(server, wanted, { report: (step) => steps.push(step) })
  assert.deepEqual(steps, ['wait for the provisioning lock'], 'once, while there was something to wait for')
})

test('a role has the password of the last provisioning', async (t) => {
  const wanted = wish(t, ['ada'])
  await provision(server, wanted)
  const changed = { ...wanted, roles: wanted.roles.map((role) => ({ ...role, password: 'changed' })) }
  await provision(server, changed)
  await query(urlFor(changed, 'ada'), 'select')
  await assert.rejects(query(urlFor(wanted, 'ada'), 'select'), { code: '28P01' })
})

test(
  'a role with CREATEDB and CREATEROLE is enough, and may not itself open what it made',
  AS_SUPERUSER,
  async (t) => {
    const maker = wish(t, ['maker'])
    await provision(server, maker)
    await query(server, `alter role ${id(nameOf(maker, 'maker'))} createdb createrole`)
    const wanted = wish(t, ['ada'])
    await provision(urlFor(maker, 'maker'), wanted)
    await provision(urlFor(maker, 'maker'), wanted)
    await query(urlFor(wanted, 'ada'), 'create table public.mine ()')
    const [{ version = 0 } = {}] = await query<{ version: number }>(
      server,
      `select current_setting('server_version_num')::int as version`,
    )
    if (version < 160_000) return t.diagnostic('before PostgreSQL 16 it must be a full member of the role')
    const opened = query(urlFor(maker, 'maker', nameOf(wanted, 'ada')), 'select')
    await assert.rejects(opened, { code: '42501' })
  },
)

test('names may contain any characters', async (t) => {
  const wanted = wish(t, [`"; drop role postgres; --'`, 'Ünï$ $1 %I'])
  await provision(server, wanted)
  await query(urlFor(wanted, 'Ünï$ $1 %I'), 'create table public.mine ()')
})

test('existing superusers and databases of other owners are refused', AS_SUPERUSER, async (t) => {
  const wanted = wish(t, ['ada', 'ben'])
  await provision(server, wanted)
  const [ada, ben] = wanted.databases
  assert.ok(ada && ben)
  const swapped = { roles: [], databases: [{ name: ada.name, owner: ben.owner }] }
  await assert.rejects(provision(server, swapped), /belongs to .*ada, not to .*ben/)
  await query(server, `alter role ${id(ada.owner)} superuser`)
  await assert.rejects(provision(server, wanted), /is a superuser/)
  await query(urlFor(wanted, 'ada'), 'select')
})

test('no password reaches the server or its log of statements', async (t) => {
  const dir = await newFolder(t)
  const settings = { log_statement: 'all', log_min_messages: 'debug1', log_connections: 'all' }
  const own = await startEmbedded(optionsFor(dir, { settings }))
  const roles = [{ name: 'ada', password: 'correct-horse-battery' }]
  await provision(own.superuserUrl, { roles, databases: [{ name: 'ada', owner: 'ada' }] })
  await query(own.url('ada', 'correct-horse-battery', 'ada'), 'select 1')
  const log = await readFile(path.join(dir, 'server.log'), 'utf8')
  assert.match(log, /create role/)
  assert.doesNotMatch(log, /correct-horse-battery/)
})

async function isSuperuser(): Promise<boolean> {
  const rows = await query<{ rolsuper: boolean }>(
    server,
    'select rolsuper from pg_roles where rolname = current_user',
  )
  return rows[0]?.rolsuper === true
}

/** A role and a database for each name, under names of this test's own; dropped after it. */
function wish(t: { after(clean: () => Promise<void>): void }, names: string[]): Provision {
  const prefix = randomBytes(4).toString('hex')
  const roles = names.map((name) => ({ name: `${prefix} ${name}`, password: randomBytes(8).toString('hex') }))
  const databases = roles.map(({ name }) => ({ name, owner: name }))
  t.after(() => dropAll(roles.map(({ name }) => name)))
  return { roles, databases }
}

/** As each owner, because a role that is not a superuser owns none of them. */
async function dropAll(names: string[]): Promise<void> {
  await withClient(server, async (client) => {
    for (const name of names) {
      await client.query(`set role ${id(name)}`)
      await dropDatabase(client, name)
      await client.query('reset role')
      await client.query(`drop role ${id(name)}`)
    }
  })
}

function nameOf({ roles }: Provision, name: string): string {
  return roles.find((role) => role.name.endsWith(` ${name}`))?.name ?? name
}

function urlFor(wanted: Provision, name: string, database = name): string {
  const role = wanted.roles.find((role) => role.name === nameOf(wanted, name))
  const url = new URL(server)
  url.username = encodeURIComponent(role?.name ?? '')
  url.password = role?.password ?? ''
  url.pathname = encodeURI(nameOf(wanted, database))
  return url.href
}
