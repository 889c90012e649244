import assert from 'node:assert/strict'
import { mkdtemp, readdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import type { Command } from 'commander'
import { program } from '#cli/program.ts'
import { builtInNames } from '#kernel/db/built-in-databases.ts'
import { dropInstallations, testDatabase, testServerUrl } from '#test/database.ts'
import { query } from '#test/embedded.ts'
import { actor, PASSWORD } from '#test/harness.ts'
import { readiness } from '#test/readiness.ts'
import { removeFolder } from '#test/temporary-folder.ts'
import { runHere } from './command.ts'
import { createTemporaryHome, type Env, runProgram, startProgram } from './program.ts'

const control = (await testDatabase({ isControl: true })).name
const controlUrl = Object.assign(new URL(testServerUrl()), { pathname: `/${control}` }).href
const names = builtInNames(control)

const home = await createTemporaryHome()
const service = await startProgram(home.folder, { DATABASE_URL: controlUrl })
const elsewhere = await mkdtemp(path.join(tmpdir(), 'gatehouse-foreign-'))
/** Value for arguments without choices. A file of this name exists as well. */
const ANYTHING = 'x'
/** Commands that open no database and use no secret; `restore` is refused where there is a server. All others must fail. */
const NEEDS_NO_INSTALLATION = new Set([
  ...['config show', 'mail list', 'mail show', 'openapi', 'pipelines check', 'breach-list build'],
  ...[`restore ${ANYTHING}`, `login ${ANYTHING}`, 'logout', 'whoami'],
])
/** Values for options that are checked before a database is opened. */
const GIVEN: Readonly<Record<string, string>> = { '--rights': 'users.read', '--email': 'ada@example.com' }
await writeFile(path.join(elsewhere, ANYTHING), '')
const PIPELINE = 'pipeline.json'
await writeFile(
  path.join(elsewhere, PIPELINE),
  JSON.stringify({ source: { table_name: 'kept' }, sink: { table_name: 'kept' } }),
)

after(async () => {
  await service.end('SIGTERM')
  await home.remove()
  await removeFolder(elsewhere)
  await dropInstallations(control)
})

const anon = actor(service.url)
const key = actor(service.url, { apikey: await home.key(), 'x-service-client': 'default' })

/** All commands of the program, with valid arguments. */
async function commands(): Promise<string[][]> {
  return leavesOf(await program([])).map(([names, command]) => [
    ...names,
    ...argumentsOf(command),
    ...(FURTHER[names.join(' ')] ?? []),
  ])
}

/** Arguments that a command requires although none of them is always required. */
const FURTHER: Readonly<Record<string, readonly string[]>> = {
  'pipelines run': ['--file', PIPELINE],
  import: ['--format', 'csv'],
}

const leavesOf = (command: Command, names: readonly string[] = []): [readonly string[], Command][] =>
  command.commands.length === 0
    ? [[names, command]]
    : command.commands.flatMap((inner) => leavesOf(inner, [...names, inner.name()]))

function argumentsOf({ options, registeredArguments }: Command): string[] {
  const wanted = options.filter(({ mandatory }) => mandatory)
  return [
    ...registeredArguments
      .filter(({ required }) => required)
      .map(({ argChoices }) => argChoices?.[0] ?? ANYTHING),
    ...wanted.flatMap(({ long, argChoices }) => [
      long ?? '',
      argChoices?.[0] ?? GIVEN[long ?? ''] ?? ANYTHING,
    ]),
  ]
}

const envOf = (env: Env): Env => ({ DATABASE_URL: controlUrl, ...env })
const spawned = (args: readonly string[], env: Env) => runProgram(elsewhere, args, envOf(env))
/** Runs in this process, except `serve`, which installs handlers for warnings and crashes. */
const run = (args: readonly string[], env: Env) =>
  args[0] === 'serve' ? spawned(args, env) : runHere(elsewhere, args, envOf(env))

/** Everything that a command could change, without the data that the running service itself keeps writing. */
async function state(): Promise<unknown> {
  const roles = await query(
    testServerUrl(),
    `select rolname, rolpassword, rolcanlogin from pg_authid where rolname like '${control}%' order by 1`,
  )
  const databases = await query(
    testServerUrl(),
    `select datname from pg_database where datname like '${control}%' order by 1`,
  )
  const tables = await query<{ name: string }>(
    controlUrl,
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
      where schemaname = 'service' and tablename <> 'process_lease' order by 1`,
  )
  const rows = tables.map(
    ({ name }) => `select '${name}' as name, xmin::text, t::text as row from ${name} as t`,
  )
  const leases = await query(controlUrl, 'select id from service.process_lease')
  return {
    roles,
    databases,
    leases,
    files: await readdir(elsewhere),
    rows: await query(controlUrl, rows.join(' union all ')),
  }
}

/** Makes the service open a new connection with its password. */
async function isUnharmed(): Promise<void> {
  await query(
    testServerUrl(),
    `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '${names.default}'`,
  )
  const read = () => key.post('/gateway/fetch', { table_name: 'kept', columns: ['one'] })
  let rows = await read()
  // The service may not have seen the end of an idle connection yet.
  while (rows.body.code === 'connection_lost') rows = await read()
  assert.equal(rows.status, 200, rows.text)
  assert.deepEqual(rows.body.data, [{ one: 1 }])
  assert.equal((await readiness(anon)).status, 200)
}

test('every command with a different secret fails, writes nothing and does not disturb the service', {
  timeout: 120_000,
}, async () => {
  const made = await key.post('/management/tables', {
    table_name: 'kept',
    columns: [{ name: 'one', data_type: 'integer', unique: true }],
  })
  assert.equal(made.status, 200, made.text)
  await key.post('/gateway/insert', { table_name: 'kept', insert_body: { one: 1 } })
  await anon.post('/api/auth/sign-up/email', { name: 'Ada', email: 'ada@example.com', password: PASSWORD })
  const before = await state()
  const all = await commands()
  assert.ok(all.length >= 15, `${all.length} commands`)
  const refused: string[] = []
  const remaining = [...all]
  const worker = async () => {
    for (let args = remaining.shift(); args !== undefined; args = remaining.shift()) {
      const command = args.slice(0, 2).join(' ')
      const { code, stderr } = await run(args, {
        SERVICE_SECRET: 'another-secret-of-40-characters-012345678',
      })
      if (NEEDS_NO_INSTALLATION.has(command)) continue
      assert.equal(code, 1, `${args.join(' ')}: ${stderr}`)
      if (command !== 'doctor')
        assert.match(stderr, /belongs to an installation with another secret/, args.join(' '))
      refused.push(args.join(' '))
    }
  }
  await Promise.all([worker(), worker()])
  assert.ok(refused.length >= 10)
  assert.deepEqual(await state(), before)
  await isUnharmed()
})

test('a command without a secret, in another folder, creates none and names the places it checked', async () => {
  const before = await state()
  const [users, serve, migrate] = await Promise.all([
    spawned(['users', 'list'], {}),
    spawned(['serve'], {}),
    spawned(['migrate'], {}),
  ])
  const file = path.join(elsewhere, 'data/secret').replaceAll('.', '\\.')
  assert.match(users.stderr, new RegExp(`no SERVICE_SECRET and no file \\S*${file}`))
  for (const { code, stderr } of [serve, migrate]) {
    assert.equal(code, 1)
    assert.match(stderr, new RegExp(`another secret: there is no SERVICE_SECRET and no file \\S*${file}`))
  }
  assert.equal(users.code, 1)
  assert.deepEqual(await state(), before)
  await isUnharmed()
})

test('read-only commands write no row and no file', async () => {
  const env = { SERVICE_SERVER__DATA_DIR: path.join(home.folder, 'data') }
  const files = () => readdir(path.join(home.folder, 'data'), { recursive: true })
  const [before, filesBefore] = [await state(), await files()]
  for (const args of [['users', 'list'], ['keys', 'list'], ['doctor']]) {
    const { code, stderr } = await run(args, env)
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`)
  }
  assert.deepEqual([await state(), await files()], [before, filesBefore])
})
