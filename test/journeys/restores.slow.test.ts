import assert from 'node:assert/strict'
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after, test } from 'node:test'
import { actor } from '#test/harness.ts'
import { startLoopbackServer } from '#test/loopback-server.ts'
import { createTemporaryHome, runProgram, startProgram } from './program.ts'

/** Loaded before the program: kills it after its n-th change of the server's folder. */
const KILLER = `
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
let changes = 0
for (const name of ['mkdtemp', 'rename', 'rm']) {
  const real = fs[name]
  fs[name] = async (...args) => {
    const result = await real(...args)
    const isChange = args.some((arg) => /\\/postgres\\/[^/]*$/.test(String(arg)))
    if (isChange && ++changes === Number(process.env.KILL_AFTER)) process.kill(process.pid, 'SIGKILL')
    return result
  }
}
syncBuiltinESMExports()`

const home = await createTemporaryHome()
after(() => home.remove())
const { folder } = home
const killer = path.join(folder, 'killer.mjs')
await writeFile(killer, KILLER)

const run = (dataFolder: string, ...args: readonly string[]) =>
  runProgram(folder, args, { SERVICE_SERVER__DATA_DIR: dataFolder })
const restore = ['restore', 'all.gatehouse', '--secret-file', 'data/secret']

/** Restores into the folder, and is killed after the n-th change of it. */
async function restoreKilled(dataFolder: string, killAfter: number): Promise<readonly string[]> {
  const { code, stderr } = await runProgram(folder, [...restore, '--replace'], {
    SERVICE_SERVER__DATA_DIR: dataFolder,
    NODE_OPTIONS: `--import=${killer}`,
    KILL_AFTER: String(killAfter),
  })
  assert.equal(code, null, stderr)
  return foldersIn(dataFolder)
}

const foldersIn = async (dataFolder: string) =>
  (await readdir(path.join(folder, dataFolder, 'postgres')))
    .map((name) => name.replace(/-(\d{8}T\d{6}Z|[A-Za-z0-9]{6})$/, ''))
    .filter((name) => /^(data|restore)/.test(name))

/** Starts the service, runs SQL on its client and stops it. */
async function inService(dataFolder: string, ...queries: readonly string[]): Promise<unknown> {
  const program = await startProgram(folder, { SERVICE_SERVER__DATA_DIR: dataFolder })
  try {
    const apikey = (await readFile(path.join(folder, dataFolder, 'admin-key'), 'utf8')).trim()
    const admin = actor(program.url, { apikey, 'x-service-client': 'default' })
    let data: unknown
    for (const query of queries) {
      const answer = await admin.post('/gateway/query', { query })
      assert.equal(answer.status, 200, answer.text)
      data = answer.body.data
    }
    return data
  } finally {
    await program.end('SIGTERM')
  }
}
const wordIn = (dataFolder: string) => inService(dataFolder, 'select word from kept')

await inService('data', `create table kept as select 'archived' as word`)
assert.equal((await run('data', 'backup', '--output', 'all.gatehouse')).code, 0)
await inService('data', `update kept set word = 'present'`)

test('after a restore that was killed while it replaces a database, there is the old one or the new one', async () => {
  for (const [killAfter, left, word, kept] of [
    [2, ['data', 'data-restored', 'restore'], 'present', ['data']],
    [3, ['data-before-restore', 'data-restored', 'restore'], 'archived', ['data', 'data-before-restore']],
  ] as const) {
    await cp(path.join(folder, 'data'), path.join(folder, 'killed'), { recursive: true })
    assert.deepEqual(await restoreKilled('killed', killAfter), left)
    assert.deepEqual(await wordIn('killed'), [{ word }])
    assert.deepEqual(await foldersIn('killed'), kept)
    await rm(path.join(folder, 'killed'), { recursive: true })
  }
})

test('after a restore that was killed in an empty folder, no command makes a new database there', async () => {
  assert.deepEqual(await restoreKilled('empty', 1), ['restore'])
  for (const command of ['serve', 'migrate']) {
    const { code, stderr } = await run('empty', command)
    assert.deepEqual(
      [code, /restore into it was interrupted.*run gatehouse restore again/.test(stderr)],
      [1, true],
    )
  }
  // Not even a secret, with which the restore would be refused.
  assert.deepEqual(await readdir(path.join(folder, 'empty')), ['postgres'])
  assert.deepEqual(await restoreKilled('empty', 3), ['data-restored', 'restore'])
  const doctor = await run('empty', 'doctor')
  assert.match(doctor.stdout, /BAD {2}database: .*interrupted at its last step: start gatehouse serve/)
  assert.deepEqual(await foldersIn('empty'), ['data-restored', 'restore'])
  const again = await run('empty', ...restore)
  assert.deepEqual([again.code, /There is a database in .* already/.test(again.stderr)], [1, true])
  assert.deepEqual(await wordIn('empty'), [{ word: 'archived' }])
  assert.deepEqual(await foldersIn('empty'), ['data'])
})

test('an archive in a bucket is restored from there, and one that cannot be read to its end is not', async () => {
  const bytes = await readFile(path.join(folder, 'all.gatehouse'))
  let most = Number.POSITIVE_INFINITY
  const bucket = await startLoopbackServer((request, response) => {
    if (request.url?.split('?')[0] !== '/backups/gatehouse/all.gatehouse')
      return response.writeHead(404).end()
    if (request.method === 'HEAD') return response.setHeader('content-length', bytes.length).end()
    const [, from = '', to = ''] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? []
    if (Number(to) > most) return response.writeHead(500).end()
    return response.writeHead(206).end(bytes.subarray(Number(from), Number(to) + 1))
  })
  const restoreFrom = (location: string) =>
    runProgram(folder, ['restore', location, '--secret-file', 'data/secret'], {
      SERVICE_SERVER__DATA_DIR: 'from-bucket',
      SERVICE_BACKUPS__S3__ENDPOINT: bucket.url,
      SERVICE_BACKUPS__S3__ACCESS_KEY_ID: 'x',
      SERVICE_BACKUPS__S3__SECRET_KEY: 'a-secret-key',
    })
  for (const location of ['s3://backups/gatehouse/other', 's3://backups', 's3://Backups/x']) {
    const { code, stderr } = await restoreFrom(location)
    assert.deepEqual([code, /There is no object s3:/.test(stderr)], [1, true], stderr)
  }
  most = 4 * 1024 * 1024
  assert.ok(bytes.length > most, 'the archive is one range only')
  const cut = await restoreFrom('s3://backups/gatehouse/all.gatehouse')
  assert.deepEqual(
    [cut.code, /object storage of the backups cannot be used \(500\)/.test(cut.stderr)],
    [1, true],
    cut.stderr,
  )
  assert.deepEqual(await foldersIn('from-bucket'), [])
  most = Number.POSITIVE_INFINITY
  const whole = await restoreFrom('s3://backups/gatehouse/all.gatehouse')
  assert.equal(whole.code, 0, whole.stderr)
  assert.deepEqual(await wordIn('from-bucket'), [{ word: 'archived' }])
})
