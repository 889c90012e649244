import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { testDatabase, withClient } from '#test/database.ts'
import { actor, controlDatabase, TEST_SECRET } from '#test/harness.ts'
import { createTemporaryHome, type Ended, runProgram, spawnCommand, startProgram } from './program.ts'

const FILE = `
pipelines:
  copy:
    description: Odd numbers
    source: { table_name: number, conditions: { operator: gt, column: n, value: 2 } }
    sink: { table_name: copied, client: other }
  lost: { source: { table_name: nowhere }, sink: { table_name: copied } }
`

test('gatehouse pipelines runs and checks pipelines without the service', async (t) => {
  const home = await createTemporaryHome()
  t.after(home.remove)
  const [own, other] = [await testDatabase(), await testDatabase()]
  const query = (url: string, text: string) =>
    withClient(url, async (client) => (await client.query(text)).rows)
  await query(own.url, 'create table number (n int); insert into number select generate_series(1, 20)')
  await query(
    own.url,
    `create view slow as select n, pg_sleep(0.001)::text as slept from generate_series(1, 300000) n`,
  )
  await query(
    other.url,
    'create table copied (n int primary key check (n <> 13)); create table far (n int, slept text)',
  )
  const controlUrl = await controlDatabase()
  const env = {
    DATABASE_URL: controlUrl,
    SERVICE_SECRET: TEST_SECRET,
    SERVICE_CLIENTS__DEFAULT__URL: own.url,
    SERVICE_CLIENTS__OTHER__URL: other.url,
  }
  const write = (name: string, text: string) => writeFile(path.join(home.folder, name), text)
  const cli = (...args: string[]): Promise<Ended> => runProgram(home.folder, ['pipelines', ...args], env)
  const rows = async () => (await query(other.url, 'select n from copied order by n')).map(({ n }) => n)

  // Without a file.
  const [missing, unnamed] = await Promise.all([cli('check'), cli('run')])
  assert.deepEqual(
    [missing.code, missing.stderr],
    [1, 'There is no pipelines.yaml here: name the file, or set gateway.pipelines_file.\n'],
  )
  assert.deepEqual([unnamed.code, unnamed.stdout], [2, ''])

  await write('pipelines.yaml', FILE)
  await write('body.json', '{ "pipeline": "copy", "source": { "limit": 2 }, "sink": { "on_conflict": "n" } }')
  await write('bad.yaml', 'pipelines:\n  a:\n    source:\n      limt: 3\n')
  const checks = await Promise.all([
    cli('check'),
    cli('check', 'bad.yaml'),
    cli('check', '--json'),
    cli('run', 'kopy'),
    cli('run', '--file', 'bad.yaml'),
    cli('run', 'copy', '--file', 'body.json'),
  ])
  const [fine, bad, listed, misspelt, badBody, both] = checks
  assert.deepEqual([fine?.code, fine?.stdout], [0, 'pipelines.yaml is valid: copy, lost\n'])
  assert.deepEqual(
    [bad?.code, bad?.stderr],
    [1, 'bad.yaml:4 pipelines.a.source.limt: unknown field; did you mean limit?\n'],
  )
  assert.equal(JSON.parse(listed?.stdout ?? '').copy.sink.client, 'other')
  assert.deepEqual([misspelt?.code, misspelt?.stderr], [1, 'There is no pipeline kopy; did you mean copy?\n'])
  assert.deepEqual(
    [badBody?.code, badBody?.stderr],
    [1, 'bad.yaml:1 pipelines: unknown field; did you mean pipeline?\n'],
  )
  assert.equal(both?.code, 2)

  const dry = await cli('run', 'copy', '--dry-run', '--json')
  assert.equal(dry.code, 0, dry.stderr)
  const result = JSON.parse(dry.stdout)
  assert.deepEqual([result.would_insert, result.dry_run, result.sink_client], [18, true, 'other'])
  assert.deepEqual(await rows(), [])

  const first = await cli('run', '--file', 'body.json')
  assert.equal(first.code, 0, first.stderr)
  assert.match(first.stdout, /^2 rows read, 2 inserted, 0 refused in \d+\.\d s, run [0-9a-f-]{36}\n$/)
  assert.deepEqual(await rows(), [3, 4])

  const refused = await cli('run', 'copy')
  assert.equal(refused.code, 1)
  assert.match(refused.stdout, /^18 rows read, 15 inserted, 3 refused in/)
  assert.match(refused.stderr, /row 0: .*\(unique_violation\)\n.*\n?row 10: .*\(check_violation\)\n/s)

  const lost = await cli('run', 'lost', '--json')
  assert.equal(lost.code, 1)
  assert.equal(JSON.parse(lost.stdout).code, 'table_not_found')
  assert.equal(lost.stderr, 'There is no table public.nowhere (table_not_found).\n')

  const queued = await query(
    controlUrl,
    `select data -> 'steps' -> 2 ->> 'table_name' as sink from service_jobs.job where name = 'log-pipeline-steps'`,
  )
  assert.deepEqual(
    queued.map(({ sink }) => sink),
    Array(3).fill('public.copied'),
  )

  await write(
    'slow.json',
    '{ "source": { "table_name": "slow" }, "sink": { "table_name": "far", "client": "other" } }',
  )
  const slow = spawnCommand(home.folder, ['pipelines', 'run', '--file', 'slow.json'], env)
  // At the exit, the last of its output may not have arrived.
  const closed = once(slow, 'close')
  let output = ''
  slow.stdout.on('data', (chunk) => {
    output += chunk
  })
  for (
    let tries = 0;
    (await query(other.url, 'select from far limit 1')).length === 0 && tries < 600;
    tries++
  );
  slow.kill('SIGINT')
  assert.deepEqual(await closed, [1, null])
  const [, stored] = /rows read, (\d+) inserted/.exec(output) ?? []
  assert.deepEqual(await query(other.url, 'select count(*)::text from far'), [{ count: stored }])

  // With a terminal, there is a bar.
  const terminal = spawn(
    'script',
    [
      '-qec',
      `${process.execPath} ${path.resolve('bin/gatehouse.mjs')} pipelines run --file body.json`,
      '/dev/null',
    ],
    { cwd: home.folder, env: { ...env, PATH: process.env.PATH ?? '', TERM: 'xterm' } },
  )
  let shown = ''
  terminal.stdout.on('data', (chunk) => {
    shown += chunk
  })
  await once(terminal, 'close')
  assert.match(shown, /\| \d+ % · .* left[\s\S]*2 rows read, 0 inserted, 0 refused/)
})

test('a pipeline of a million rows adds less than 200 MB to the memory of the service', {
  skip: !existsSync('/proc/self/status') && 'reads the memory of a process from /proc, as on Linux',
}, async (t) => {
  const home = await createTemporaryHome()
  const program = await startProgram(home.folder)
  t.after(async () => {
    await program.end('SIGKILL')
    await home.remove()
  })
  const key = actor(program.url, { apikey: await home.key(), 'x-service-client': 'default' })
  const query = (query: string) => key.post('/gateway/query', { query })
  await query(
    'create table copied (id int primary key, name text, active boolean, price numeric, at timestamptz)',
  )
  const made = await query(`create view million as select n as id, 'name ' || n as name, n % 2 = 0 as active,
    (n * 1.25)::numeric(12,2) as price, timestamptz '2026-01-01' + n * interval '1 second' as at from generate_series(1, 1000000) n`)
  assert.equal(made.status, 200, made.text)

  const idle = await megabytesOf(program.child.pid)
  let peak = idle
  const watch = setInterval(async () => {
    peak = Math.max(peak, await megabytesOf(program.child.pid))
  }, 50)
  const began = performance.now()
  const { body } = await key.post('/pipelines', {
    source: { table_name: 'million' },
    sink: { table_name: 'copied' },
  })
  const seconds = (performance.now() - began) / 1_000
  clearInterval(watch)
  t.diagnostic(`${Math.round(1_000_000 / seconds)} rows/s, from ${idle} MB to ${peak} MB`)
  assert.equal(body.rows_inserted, 1_000_000)
  assert.ok(peak - idle < 200, `from ${idle} MB to ${peak} MB`)
  const stored = await query(
    'select count(*)::int, count(distinct id)::int as ids, sum(price)::text from copied',
  )
  assert.deepEqual(stored.body.data, [{ count: 1_000_000, ids: 1_000_000, sum: '625000625000.00' }])
})

/** Resident memory without the pages of program files. */
async function megabytesOf(pid: number | undefined): Promise<number> {
  const [, kilobytes] = /^RssAnon:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kilobytes) / 1_000)
}
