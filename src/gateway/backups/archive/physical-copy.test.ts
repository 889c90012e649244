import assert from 'node:assert/strict'
import { open } from 'node:fs/promises'
import path from 'node:path'
import { after, test } from 'node:test'
import { startEmbedded } from '#kernel/db/embedded.ts'
import { eventually, newFolder, optionsFor, query } from '#test/embedded.ts'
import { outcomeOf } from '../jobs/end.ts'
import { copyServer } from './physical-copy.ts'

const dir = await newFolder({ after })
const server = await startEmbedded(optionsFor(dir))
after(() => server.stop())
const sql = (text: string) => query(server.superuserUrl, text)
await sql('create table kept as select n, repeat(md5(n::text), 30) as text from generate_series(1, 10000) n')
await sql('create unlogged table fleeting as select n from generate_series(1, 10000) n')
const fileOf = async (table: string): Promise<string> =>
  String((await sql(`select pg_relation_filepath('${table}') as file`))[0]?.file)

let copied = 0
let total = 0
const copy = () =>
  copyServer({
    url: server.superuserUrl,
    label: 'gatehouse test',
    onTotal: (bytes) => {
      total = bytes
    },
    onBytes: (bytes) => {
      copied += bytes
    },
  })

/** Reads all of it, and nothing after the first entry until `begun` is done; the sizes by name, and undefined for a folder. */
async function readCopy(begun = async () => {}): Promise<ReadonlyMap<string, number | undefined>> {
  const entries = new Map<string, number | undefined>()
  for await (const entry of copy()) {
    if (entries.size === 0) await begun()
    entries.set(entry.name, entry.kind === 'file' ? 0 : undefined)
    if (entry.kind === 'folder') continue
    for await (const chunk of entry.content)
      entries.set(entry.name, (entries.get(entry.name) ?? 0) + chunk.length)
    assert.equal(entries.get(entry.name), entry.size)
  }
  return entries
}

const leavesNothing = () =>
  eventually(async () => {
    const [left] = await sql(
      `select (select count(*) from pg_replication_slots)::int as slots, (select count(*) from pg_stat_progress_basebackup)::int as copies`,
    )
    return left?.slots === 0 && left?.copies === 0
  })

test('a copy has the data folder, what recovery needs, and nothing that it must not have', async () => {
  const entries = await readCopy()
  const [kept, fleeting] = [await fileOf('kept'), await fileOf('fleeting')]
  for (const name of ['PG_VERSION', 'backup_label', 'global/pg_control', kept, `${fleeting}_init`])
    assert.ok(entries.has(`data/${name}`), name)
  for (const name of ['postmaster.pid', 'postmaster.opts', 'backup_manifest', fleeting])
    assert.equal(entries.has(`data/${name}`), false, name)
  assert.ok([...entries.keys()].some((name) => /^data\/pg_wal\/[0-9A-F]{24}$/.test(name)))
  assert.ok(entries.has('data/pg_wal/summaries'))
  assert.ok(total > 20_000_000 && copied >= total, `${copied} of ${total}`)
  await leavesNothing()
})

test('a copy that is not read to its end, and one whose session is lost, leave no slot behind', async () => {
  for await (const _ of copy()) break
  await leavesNothing()
  const end = () =>
    eventually(async () => {
      const ended = await sql('select pg_terminate_backend(pid) as was from pg_stat_progress_basebackup')
      return ended.length > 0
    })
  // A copy that is read meanwhile may be done before its session is found.
  await assert.rejects(readCopy(end))
  await leavesNothing()
})

test('a damaged page fails the copy, since no backup must replace a good one', async () => {
  await sql('checkpoint')
  await using file = await open(path.join(dir, 'data', await fileOf('kept')), 'r+')
  await file.write(Buffer.from('damaged'), 0, 7, 8_192 + 4_000)
  await assert.rejects(readCopy(), (error) => {
    assert.match(
      outcomeOf(error).message,
      /^A file of the database is damaged: .* keep the backups of before/,
    )
    return true
  })
  await leavesNothing()
})
