import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmod, readdir, readFile, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { testDatabase, withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { TEST_SECRET, testService } from '#test/harness.ts'
import { createTemporaryFolder, removeFolder } from '#test/temporary-folder.ts'
import { runProgram, spawnCommand } from './program.ts'

const database = await testDatabase()
const sql = (text: string) => withClient(database.url, (client) => client.query(text))
await sql('create table book (id bigint primary key, title text not null)')
const t = await testService({ config: { clients: { books: { url: database.url } } } })
const folder = await createTemporaryFolder()
after(async () => {
  await t.stop()
  await database.drop()
  await removeFolder(folder)
})
const ENV = {
  DATABASE_URL: t.controlUrl,
  SERVICE_SECRET: TEST_SECRET,
  SERVICE_CLIENTS__BOOKS__URL: database.url,
}
const run = (...args: string[]) => runProgram(folder, ['types', '--client', 'books', ...args], ENV)
const file = path.join(folder, 'database.ts')

test('the command writes what the service answers, to a file or to standard output', async () => {
  const headers = { 'x-service-client': 'books' }
  for (const [query, args] of [
    ['', []],
    ['?shape=supabase', ['--shape', 'supabase']],
    ['?shape=kysely&numbers=exact', ['--shape', 'kysely', '--numbers', 'exact']],
  ] as const) {
    const answered = (await t.admin.get(`/schema/types${query}`, { headers })).text
    const printed = await run(...args)
    assert.deepEqual([printed.code, printed.stdout], [0, answered], printed.stderr)
    const written = await run(...args, '--out', 'database.ts')
    assert.deepEqual([written.code, written.stdout], [0, 'database.ts written.\n'], written.stderr)
    assert.equal(await readFile(file, 'utf8'), answered)
  }
})

test('a file whose text is the same stays as it is', async () => {
  assert.equal((await run('--out', 'database.ts')).code, 0)
  const before = await stat(file)
  const again = await run('--out', 'database.ts')
  assert.deepEqual([again.code, again.stdout], [0, ''])
  const { ino, mtimeMs } = await stat(file)
  assert.deepEqual([ino, mtimeMs], [before.ino, before.mtimeMs])
  assert.deepEqual(await readdir(folder), ['database.ts'])
})

test('while it watches, the file follows the structure; Ctrl-C ends it with exit code 0', async () => {
  const args = ['types', '--client', 'books', '--shape', 'supabase', '--out', 'watched.ts', '--watch']
  const child = spawnCommand(folder, args, ENV)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const written = async () => {
    assert.equal((await lines.next()).value, 'watched.ts written.')
    return readFile(path.join(folder, 'watched.ts'), 'utf8')
  }
  assert.doesNotMatch(await written(), /pages/)
  await sql('alter table book add pages int')
  assert.match(await written(), /pages\?: number \| null/)
  await sql("create type mood as enum ('glad')")
  assert.match(await written(), /mood: "glad"/)
  child.kill('SIGINT')
  await once(child, 'exit')
  assert.deepEqual([child.exitCode, child.signalCode], [0, null])
})

test('a watcher outlives what happens to its file and to its database', async () => {
  await sql('create table leaving (id int primary key)')
  const args = ['types', '--client', 'books', '--out', 'lasting.ts', '--watch']
  const [child, other] = [spawnCommand(folder, args, ENV), spawnCommand(folder, args, ENV)]
  const errors = createInterface({ input: child.stderr })[Symbol.asyncIterator]()
  const lasting = path.join(folder, 'lasting.ts')
  const text = () => readFile(lasting, 'utf8').catch(() => '')
  const has = (pattern: RegExp) => eventually(async () => pattern.test(await text()))
  await has(/leaving: /)
  await sql('drop table leaving')
  await eventually(async () => !/leaving: /.test(await text()))
  // A file that may not be written is told once, and written as soon as it may.
  await chmod(lasting, 0o444)
  await sql('create table coming (id int primary key)')
  assert.equal((await errors.next()).value, `${lasting} is read-only; trying again.`)
  await chmod(lasting, 0o644)
  await has(/coming: /)
  await rm(lasting)
  await has(/coming: /)
  // Neither do connections that the server ends.
  await sql(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
  )
  await sql('alter table coming add column later int')
  await has(/later: /)
  for (const program of [child, other]) {
    program.kill('SIGINT')
    await once(program, 'exit')
    assert.deepEqual([program.exitCode, program.signalCode], [0, null])
  }
  assert.deepEqual(
    (await readdir(folder)).filter((name) => /part/.test(name)),
    [],
  )
})

test('wrong usage and unknown clients are told in a sentence', async () => {
  const missing = await run('--watch')
  assert.deepEqual([missing.code, missing.stderr], [2, '--watch needs --out FILE.\n'])
  assert.equal((await run('--shape', 'prisma')).code, 2)
  const unknown = await runProgram(folder, ['types', '--client', 'nowhere', '--out', 'nowhere.ts'], ENV)
  assert.equal(unknown.code, 1)
  assert.match(unknown.stderr, /^There is no client nowhere\. /)
  const nowhere = await run('--out', 'missing/database.ts')
  assert.deepEqual([nowhere.code, nowhere.stdout], [1, ''])
  assert.match(nowhere.stderr, /missing\/database\.ts does not exist\.\n$/)
})
