import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { testDatabase, withClient } from '#test/database.ts'
import { TEST_SECRET, testService } from '#test/harness.ts'
import { removeFolder } from '#test/temporary-folder.ts'
import { addWebhook } from '#test/webhooks.ts'
import { runProgram } from './program.ts'

const database = await testDatabase()
const sql = (text: string) => withClient(database.url, async (client) => (await client.query(text)).rows)
await sql(`create table book (id int primary key, title text not null, more jsonb, tags text[]); create table copy (like book);
  insert into book values (1, 'a "quoted", title', '{"k": 1.10}', '{x,y}'), (2, '', 'null', null), (3, E'two\\nlines', null, '{}');
  create table many as select n as id from generate_series(1, 25000) n`)
const t = await testService({ config: { clients: { books: { url: database.url } } } })
const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-import-'))
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
const run = (...args: string[]) => runProgram(folder, [...args, '--client', 'books'], ENV)
const file = (name: string) => path.join(folder, name)

test('a table that is exported and imported is the same, as CSV and as JSON lines', async () => {
  for (const format of ['csv', 'jsonl']) {
    const written = await run('export', '--table', 'book', '--format', format, '--out', `book.${format}`)
    assert.equal(written.code, 0, written.stderr)
    assert.equal((await stat(file(`book.${format}`))).mode & 0o777, 0o600)
    await sql('truncate copy')
    const stored = await run('import', `book.${format}`, '--table', 'copy')
    assert.equal(stored.code, 0, stored.stderr)
    assert.match(stored.stdout, /^3 rows read, 3 inserted, 0 refused in /)
    // An insert of JSON has no JSON null but NULL.
    const same = format === 'csv' ? 'more::text' : `nullif(more::text, 'null')`
    const rows = (table: string) => sql(`select id, title, ${same} as more, tags from ${table} order by id`)
    assert.deepEqual(await rows('copy'), await rows('book'))
  }
})

test('an export has all rows, beyond gateway.max_rows, also on standard output', async () => {
  const { stdout, code } = await run('export', '--table', 'many')
  assert.equal(code, 0)
  const numbers = Array.from({ length: 25_000 }, (_, index) => `${index + 1}\r\n`)
  assert.ok(stdout === `id\r\n${numbers.join('')}`)
  const missing = await run('export', '--table', 'nowhere', '--out', 'nowhere.csv')
  assert.equal(missing.code, 1)
  assert.deepEqual([existsSync(file('nowhere.csv')), existsSync(file('nowhere.csv.part'))], [false, false])
})

test('the actor in the event of an import is the command', async () => {
  const { kernel } = t.service
  await addWebhook(kernel, { url: 'https://hooks.example.com/in', clientName: 'books' })
  await sql('truncate copy')
  await writeFile(file('one.jsonl'), '{"id": 1, "title": "one"}\n')
  assert.equal((await run('import', 'one.jsonl', '--table', 'copy')).code, 0)
  const [event] = await kernel.db.deleteFrom('webhookEvent').returning('body').execute()
  assert.deepEqual(JSON.parse(event?.body ?? '{}').data.actor, { kind: 'cli', id: null })
})

test('bad rows are told by row and line with exit code 1, and a dry run stores nothing', async () => {
  await sql('truncate copy')
  await writeFile(file('rows.csv'), 'Number;Title\n1;one\nx;two\n3;three\n')
  const options = [
    '--table',
    'copy',
    '--delimiter',
    'semicolon',
    '--columns',
    '{"Number": "id", "Title": "title"}',
  ]
  const dry = await run('import', 'rows.csv', ...options, '--dry-run')
  assert.equal(dry.code, 1)
  assert.match(dry.stdout, /^3 rows read, 2 to insert, 1 refused in /)
  assert.deepEqual(await sql('select id from copy'), [])
  const stored = await run('import', 'rows.csv', ...options, '--json')
  assert.equal(stored.code, 1)
  const { rows_inserted, errors } = JSON.parse(stored.stdout)
  assert.deepEqual([rows_inserted, errors[0].row, errors[0].line, errors[0].code], [2, 2, 3, 'invalid_value'])
  assert.deepEqual(await sql('select id from copy order by id'), [{ id: 1 }, { id: 3 }])
})

test('wrong usage is exit code 2, and a missing file or client says so', async () => {
  await writeFile(file('rows'), 'id\n1\n')
  assert.equal((await run('import', 'rows', '--table', 'copy')).code, 2)
  assert.equal((await run('import', 'rows.csv')).code, 2)
  assert.match((await run('import', 'absent.csv', '--table', 'copy')).stderr, /absent\.csv/)
  const other = await runProgram(folder, ['export', '--table', 'book', '--client', 'nowhere'], ENV)
  assert.match(other.stderr, /There is no client nowhere/)
})
