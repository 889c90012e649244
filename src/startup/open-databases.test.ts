import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import { insertClient, listClients, updateClient } from '#databases/clients/store.ts'
import { defaultConfig } from '#kernel/config/config.ts'
import { builtInNames } from '#kernel/db/built-in-databases.ts'
import { connectOnce, type Db } from '#kernel/db/connect.ts'
import { migrate } from '#kernel/db/migrate.ts'
import { QUEUE_VERSION } from '#kernel/db/queue-version.ts'
import { secureRandom, uuidv7 } from '#kernel/random.ts'
import { createSecrets, newSecret } from '#kernel/secrets.ts'
import { dropInstallations, testDatabase, testServerUrl } from '#test/database.ts'
import { query } from '#test/embedded.ts'
import { sealUnbound } from '#test/unbound-seal.ts'
import type { OpenOptions } from './control-database.ts'
import { dropSealed } from './lost-secret.ts'
import { openDatabases } from './open-databases.ts'

const server = testServerUrl()
const id = pg.escapeIdentifier

/** URL of a database on the server of the test run. */
const on = (database: string): string => Object.assign(new URL(server), { pathname: `/${database}` }).href

/** Databases and roles that a test has created besides its control databases. */
const controls: string[] = []
after(() => dropInstallations(...controls))

async function controlDatabase(): Promise<{ url: string; name: string }> {
  const { name } = await testDatabase()
  controls.push(name)
  return { url: on(name), name }
}

// Without files in the data folder, which would be those of an installation.
const configOf = (given: object) => defaultConfig({ ...given, server: { data_dir: '/none' } })
type Installation = { readonly secret?: string; readonly previous?: string } & Partial<OpenOptions>

const open = (url: string, { secret = newSecret(secureRandom), previous, ...more }: Installation = {}) =>
  openDatabases({
    config: configOf({ database: { url } }),
    secrets: createSecrets(secret, secureRandom, previous),
    mismatch: 'the one of the test does not fit',
    random: secureRandom,
    report: () => {},
    createsMissing: true,
    ...more,
  })

/** Everything on the server that opening could change. */
async function state(control: string): Promise<unknown> {
  const roles = await query(
    server,
    `select rolname, rolpassword, shobj_description(oid, 'pg_authid') from pg_authid
      where rolname like '${control}%' order by rolname`,
  )
  const databases = await query(
    server,
    `select datname, shobj_description(oid, 'pg_database') from pg_database where datname like '${control}%' order by datname`,
  )
  const tables = await query<{ name: string }>(
    on(control),
    `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname in ('public', 'service')`,
  )
  const rows = tables.map(
    ({ name }) => `select '${name}' as name, xmin::text, t::text as row from ${name} as t`,
  )
  return {
    roles,
    databases,
    tables,
    rows: rows.length === 0 ? [] : await query(on(control), rows.join(' union all ')),
  }
}

test('two installations on one server share neither data nor roles', async () => {
  const [first, second] = [await controlDatabase(), await controlDatabase()]
  const [one, two] = [await open(first.url), await open(second.url)]
  await query(one.builtIn.default ?? '', 'create table public.mine as select 1 as one')
  assert.deepEqual(await query(two.builtIn.default ?? '', `select to_regclass('public.mine') as found`), [
    { found: null },
  ])
  const crossed = new URL(two.builtIn.default ?? '')
  crossed.pathname = new URL(one.builtIn.default ?? '').pathname
  await assert.rejects(query(crossed.href, 'select'), { code: '42501' })
  assert.notEqual(one.logging?.ownerUrl, two.logging?.ownerUrl)
  // Again, each with its own secret.
  await assert.rejects(open(first.url), /belongs to an installation with another secret/)
})

test('another secret is refused with advice before anything is written', async () => {
  const { url, name } = await controlDatabase()
  await open(url)
  const before = await state(name)
  for (const createsMissing of [true, false]) {
    await assert.rejects(open(url, { createsMissing }), {
      message:
        /belongs to an installation with another secret: the one of the test does not fit\. .*SERVICE_SERVER__DATA_DIR.*SERVICE_SECRET/,
    })
  }
  assert.deepEqual(await state(name), before)
})

test('of two concurrent first starts with different secrets, one becomes the installation', async () => {
  const { url } = await controlDatabase()
  const starts = await Promise.allSettled([open(url), open(url)])
  const lost = starts.filter((start) => start.status === 'rejected')
  assert.equal(lost.length, 1)
  assert.match(String(lost[0]?.reason), /another secret/)
  const won = starts.find((start) => start.status === 'fulfilled')
  assert.ok(won)
  await query(won.value.builtIn.default ?? '', 'select')
})

test('a database that a newer version has used is refused before anything is created or changed', async () => {
  const [empty, used] = [await controlDatabase(), await controlDatabase()]
  const [secret, next] = [newSecret(secureRandom), newSecret(secureRandom)]
  await open(used.url, { secret })
  for (const { url, name } of [empty, used]) {
    await query(
      url,
      `create schema service_jobs; create table service_jobs.version as select ${QUEUE_VERSION + 1} as version`,
    )
    const before = await state(name)
    await assert.rejects(open(url, { secret: next, previous: secret }), /job queue.*newer version/)
    assert.deepEqual(await state(name), before)
  }
  await query(
    used.url,
    `drop schema service_jobs cascade; insert into service.migration values ('9999_later.sql', 'x')`,
  )
  const before = await state(used.name)
  await assert.rejects(open(used.url, { secret: next, previous: secret }), /9999_later\.sql.*newer version/)
  assert.deepEqual(await state(used.name), before)
})

test('the second start of an installation changes nothing, not even a password', async () => {
  const { url, name } = await controlDatabase()
  const secret = newSecret(secureRandom)
  await open(url, { secret })
  const before = await state(name)
  for (const createsMissing of [true, false]) await open(url, { secret, createsMissing })
  assert.deepEqual(await state(name), before)
})

test('a command that creates nothing refuses an empty control database, which stays empty', async () => {
  const { url, name } = await controlDatabase()
  await assert.rejects(
    open(url, { createsMissing: false }),
    /no installation in the control database .*gatehouse serve/,
  )
  const config = configOf({ database: { url, migrate: false } })
  await assert.rejects(open(url, { config }), /no installation in the control database .*gatehouse migrate/)
  assert.deepEqual(await query(url, `select to_regnamespace('service') as service`), [{ service: null }])
  assert.deepEqual(await query(server, `select from pg_roles where rolname like '${name}%'`), [])
})

test('after a rotation serve and migrate set new passwords; other commands can connect before that', async () => {
  const { url } = await controlDatabase()
  const [secret, next] = [newSecret(secureRandom), newSecret(secureRandom)]
  const old = await open(url, { secret })
  const reading = await open(url, { secret: next, previous: secret, createsMissing: false })
  await query(reading.builtIn.default ?? '', 'select')
  const rotated = await open(url, { secret: next, previous: secret })
  await query(rotated.builtIn.default ?? '', 'select')
  await query(rotated.logging?.ownerUrl ?? '', 'select')
  await assert.rejects(query(old.builtIn.default ?? '', 'select'), { code: '28P01' })
  await open(url, { secret: next })
  await assert.rejects(open(url, { secret }), /another secret/)
})

test('a control database from before the first release is refused with advice', async () => {
  const { url } = await controlDatabase()
  await query(url, 'create schema service; create table service.migration (name text, checksum text)')
  await assert.rejects(open(url), /from before the first release of Gatehouse, which no version can use/)
  const without = await controlDatabase()
  await migrate(without.url)
  await assert.rejects(open(without.url), /from before the first release/)
})

test('a copy is refused, until migrate --as-copy makes it an installation of its own', async () => {
  const { url, name } = await controlDatabase()
  const secret = newSecret(secureRandom)
  const original = await open(url, { secret })
  const copy = (await testDatabase({ template: name })).name
  controls.push(copy)
  await assert.rejects(open(on(copy), { secret }), {
    message: new RegExp(`${copy} is a copy of ${name}: .*gatehouse migrate --as-copy`),
  })
  await query(original.builtIn.default ?? '', 'create table public.mine ()')
  await assert.rejects(open(on(copy), { takeOver: 'copy' }), /another secret/)
  const taken = await open(on(copy), { secret, takeOver: 'copy' })
  assert.deepEqual(await query(taken.builtIn.default ?? '', `select to_regclass('public.mine') as mine`), [
    { mine: null },
  ])
  await open(on(copy), { secret })
  // Without a copy nothing changes.
  await open(url, { secret, takeOver: 'copy' })
  await open(url, { secret })
})

test('roles and databases of another installation, or of unknown origin, are refused', async () => {
  const first = await controlDatabase()
  const names = builtInNames(first.name)
  const secret = newSecret(secureRandom)
  await query(server, `create role ${id(names.default)} login`)
  await assert.rejects(open(first.url, { secret }), {
    message: new RegExp(
      `The role ${names.default} exists already and was not created by this installation: .*comment on role`,
    ),
  })
  await query(server, `comment on role ${id(names.default)} is 'gatehouse installation of somebody'`)
  await assert.rejects(
    open(first.url, { secret }),
    /belongs to another Gatehouse \(gatehouse installation of somebody\)/,
  )
  assert.deepEqual(await query(server, `select from pg_database where datname = '${names.default}'`), [])
})

test('a start binds to its client the URL that a former version has sealed without one', async () => {
  const { url } = await controlDatabase()
  const secrets = createSecrets(newSecret(secureRandom), secureRandom)
  await open(url, { secrets })
  const control = connectOnce(url)
  try {
    const { id } = await insertSealed(control.db, 'shop', () => sealUnbound(secrets, 'client-url', 'the URL'))
    await open(url, { secrets })
    const [client] = await listClients(control.db)
    assert.equal(secrets.open('client-url', client?.sealedUrl ?? '', id), 'the URL')
  } finally {
    await control.close()
  }
})

function insertSealed(db: Db, clientName: string, sealedFor: (id: string) => string | null) {
  const id = uuidv7(new Date(), secureRandom)
  const sealedUrl = sealedFor(id)
  return insertClient(db, {
    ...{ id, clientName, sealedUrl, driver: 'postgresql', urlEnvVar: sealedUrl === null ? 'SHOP_URL' : null },
    ...{ description: null, lastSeenAt: null, deletedAt: null, createdAt: new Date(), updatedAt: new Date() },
  })
}

test('migrate --new-secret continues without the lost secret, and drops what it had sealed', async () => {
  const { url } = await controlDatabase()
  const lost = createSecrets(newSecret(secureRandom), secureRandom)
  await open(url, { secrets: lost })
  const control = connectOnce(url)
  try {
    const sealedUrl = (id: string) => lost.seal('client-url', 'postgres://a:b@db.example.com/c', id)
    await insertSealed(control.db, 'sealed', sealedUrl)
    await insertSealed(control.db, 'named', () => null)
    const { id } = await insertSealed(control.db, 'pooled', () => null)
    const sealedDirectUrl = lost.seal('client-direct-url', 'postgres://a:b@db.example.com/c', id)
    await updateClient(control.db, 'pooled', { sealedDirectUrl })
    const secrets = createSecrets(newSecret(secureRandom), secureRandom)
    await open(url, { secrets, takeOver: 'foreign' })
    assert.deepEqual(await dropSealed(url, secrets), [
      'dropped client sealed: register it again',
      'dropped the direct_url of client pooled: set it again',
    ])
    const left = await listClients(control.db)
    assert.deepEqual(
      left.map(({ clientName, sealedDirectUrl }) => [clientName, sealedDirectUrl]),
      ['named', 'pooled'].map((name) => [name, null]),
    )
    const opened = await open(url, { secrets })
    await query(opened.builtIn.default ?? '', 'select')
    await assert.rejects(open(url, { secrets: lost }), /another secret/)
  } finally {
    await control.close()
  }
})

test('long names of control databases give shortened names for the other databases', () => {
  const [one, two] = ['a', 'b'].map((end) => builtInNames(`${'ü'.repeat(30)}${end}`))
  for (const names of [one, two]) {
    for (const name of Object.values(names ?? {})) assert.ok(Buffer.byteLength(name) <= 63, name)
  }
  assert.notEqual(one?.reader, two?.reader)
  assert.equal(builtInNames('x'.repeat(48)).reader, `${'x'.repeat(48)}_logging_reader`)
  assert.match(builtInNames('x'.repeat(49)).default, /^x{39}_[0-9a-f]{8}_default$/)
})

test('databases that the operator configures are not created, and other clients do not replace the built-in one', async () => {
  const { url } = await controlDatabase()
  const secret = newSecret(secureRandom)
  const shop = { shop: { url: 'postgres://shop@db.example.com/shop' } }
  const given = await open(url, { secret, config: configOf({ database: { url }, clients: shop }) })
  assert.deepEqual(Object.keys(given.builtIn), ['default'])
  const second = await controlDatabase()
  const config = configOf({ database: { url: second.url }, builtInClient: false })
  const without = await open(second.url, { config })
  assert.deepEqual([without.builtIn, without.logging !== undefined], [{}, true])
  const databases = await query(
    server,
    `select datname from pg_database where datname like '${second.name}_%'`,
  )
  assert.deepEqual(databases, [{ datname: `${second.name}_logging` }])
})
