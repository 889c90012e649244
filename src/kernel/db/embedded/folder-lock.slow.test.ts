import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import path from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { startEmbedded } from '#kernel/db/embedded.ts'
import {
  type Cleanup,
  eventually,
  madeFolder,
  newFolder,
  optionsFor,
  postmasterOf,
  query,
  startInChild,
  templateFolder,
} from '#test/embedded.ts'
import { createTemporaryFolder } from '#test/temporary-folder.ts'
import { LOCKERS, lockFile } from './folder-lock.ts'

/** Like another container on the same volume: with its own process ids, shared memory and mounts. */
const ANOTHER_CONTAINER = [
  'unshare',
  '--pid',
  '--ipc',
  '--mount',
  '--mount-proc',
  '--fork',
  '--kill-child',
  '--',
]

const canUnshare = await promisify(execFile)('unshare', [...ANOTHER_CONTAINER.slice(1), 'true']).then(
  () => true,
  () => false,
)
const IN_ANOTHER_CONTAINER = { skip: !canUnshare && 'may not make namespaces here' }

const made = await templateFolder(after)

test(
  'of two containers on one volume the second start is refused, also while the first makes its database',
  IN_ANOTHER_CONTAINER,
  async (t) => {
    await Promise.all([refusedThere(t), refusedHere(t)])
  },
)

async function refusedThere(t: Cleanup): Promise<void> {
  const dir = await madeFolder(t, made)
  const server = await startEmbedded(optionsFor(dir))
  const postmaster = await postmasterOf(dir)
  await assert.rejects(startInChild(t, dir, { wrap: ANOTHER_CONTAINER }), {
    message: new RegExp(`already runs on ${dir}: .*another container.*server\\.data_dir`),
  })
  assert.equal(await postmasterOf(dir), postmaster, 'its lock file is still there')
  assert.deepEqual(await query(server.superuserUrl, 'select 1 as one'), [{ one: 1 }])
}

async function refusedHere(t: Cleanup): Promise<void> {
  const dir = await newFolder(t)
  const there = startInChild(t, dir, { wrap: ANOTHER_CONTAINER })
  await eventually(() => existsSync(path.join(dir, 'lock')))
  await eventually(async () => !(await isFree(dir)))
  await assert.rejects(startEmbedded(optionsFor(dir)), { message: /already runs on .* another container/ })
  const { url, stop } = await there
  assert.deepEqual(await query(url, 'select 1 as one'), [{ one: 1 }])
  await stop()
  await eventually(() => isFree(dir))
  await (await startEmbedded(optionsFor(dir))).stop()
}

test('the server holds the lock until its last process has ended, also when its parent was killed', async (t) => {
  const dir = await madeFolder(t, made)
  const child = await startInChild(t, dir)
  const postmaster = await postmasterOf(dir)
  const [backend] = await query<{ pid: number }>(
    child.url,
    `select pid from pg_stat_activity where backend_type = 'checkpointer'`,
  )
  process.kill(postmaster, 'SIGSTOP')
  child.process.kill('SIGKILL')
  await once(child.process, 'exit')
  assert.equal(await isFree(dir), false, 'the server')
  process.kill(backend?.pid ?? 0, 'SIGSTOP')
  process.kill(postmaster, 'SIGKILL')
  await sleep(100)
  assert.equal(await isFree(dir), false, 'a process of it')
  process.kill(backend?.pid ?? 0, 'SIGKILL')
  await eventually(() => isFree(dir))
})

test('a stop kills a server that does not respond, with all of its processes', async (t) => {
  const dir = await madeFolder(t, made)
  const server = await startEmbedded(optionsFor(dir))
  await query(server.superuserUrl, `create table kept as select 'yes' as word`)
  const pids = await query<{ pid: number }>(
    server.superuserUrl,
    'select pid from pg_stat_activity where pid <> pg_backend_pid()',
  )
  for (const pid of [await postmasterOf(dir), ...pids.map(({ pid }) => pid)]) process.kill(pid, 'SIGSTOP')
  const since = performance.now()
  await server.stop(200)
  assert.ok(performance.now() - since < 30_000)
  const next = await startEmbedded(optionsFor(dir))
  assert.deepEqual(await query(next.superuserUrl, 'table kept'), [{ word: 'yes' }])
})

for (const locker of LOCKERS) {
  test(`a file is locked by ${path.basename(locker[0] ?? '')} until all processes that inherited it have ended`, async (t) => {
    const folder = await createTemporaryFolder()
    t.after(() => promisify(execFile)('rm', ['-r', folder]))
    const file = path.join(folder, 'lock')
    await using first = await open(file, 'a+')
    await using second = await open(file, 'a+')
    assert.equal(await lockFile(first.fd, file, [locker]), true)
    assert.equal(await lockFile(second.fd, file, [locker]), false)
    const heir = spawn('sleep', ['60'], { stdio: ['ignore', 'ignore', 'ignore', first.fd] })
    await once(heir, 'spawn')
    await first.close()
    assert.equal(await lockFile(second.fd, file, [locker]), false)
    heir.kill()
    await once(heir, 'exit')
    assert.equal(await lockFile(second.fd, file, [locker]), true)
  })
}

test('the first program that can be run is used; without one, the folder is refused and the error names the package', async (t) => {
  const folder = await createTemporaryFolder()
  t.after(() => promisify(execFile)('rm', ['-r', folder]))
  const file = path.join(folder, 'lock')
  await using handle = await open(file, 'a+')
  const missing = ['no-such-program']
  const broken = [process.execPath, '--no-such-option']
  assert.equal(await lockFile(handle.fd, file, [missing, broken, ...LOCKERS]), true)
  await assert.rejects(lockFile(handle.fd, file, [missing, broken]), {
    name: 'EmbeddedServerError',
    message: new RegExp(
      `cannot be locked.*${file}.*no-such-program.*bad option.*Install util-linux.*DATABASE_URL`,
    ),
  })
})

async function isFree(dir: string): Promise<boolean> {
  const file = path.join(dir, 'lock')
  await using handle = await open(file, 'r+')
  return lockFile(handle.fd, file)
}
