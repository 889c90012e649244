import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { lstat, readdir, readlink } from 'node:fs/promises'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { startEmbedded } from '#kernel/db/embedded.ts'
import {
  eventually,
  hasEnded,
  madeFolder,
  newFolder,
  optionsFor,
  postmasterOf,
  query,
  spawnStarter,
  startInChild,
  templateFolder,
} from '#test/embedded.ts'

const made = await templateFolder(after)

test('the server ends when its parent is killed by SIGKILL', async (t) => {
  const dir = await madeFolder(t, made)
  const child = await startInChild(t, dir)
  child.process.kill('SIGKILL')
  await eventually(() => hasEnded(dir))
})

test('the server ends when its parent exits without stopping it', async (t) => {
  const dir = await madeFolder(t, made)
  const child = await startInChild(t, dir, { before: `setTimeout(() => process.exit(0), 50)` })
  await once(child.process, 'exit')
  await eventually(() => hasEnded(dir))
})

test('data committed before the parent was killed by SIGKILL is there at the next start', async (t) => {
  const dir = await madeFolder(t, made)
  const child = await startInChild(t, dir)
  await query(child.url, 'create table written (n bigint)')
  const client = new pg.Client({ connectionString: child.url })
  client.on('error', () => {}) // its end is what the test is about
  await client.connect()
  let answered = 0
  const writing = assert.rejects(async () => {
    for (;;) {
      await client.query('insert into written values ($1)', [answered + 1])
      answered++
    }
  })
  await eventually(() => answered > 100)
  child.process.kill('SIGKILL')
  const server = await startEmbedded(optionsFor(dir))
  await writing
  const [found] = await query<{ count: string }>(server.superuserUrl, 'select count(*) from written')
  // The last one may have been committed without an answer.
  assert.ok([answered, answered + 1].includes(Number(found?.count)), `${found?.count} of ${answered}`)
})

test('a killed server is reported with its log, and the next start recovers', async (t) => {
  const dir = await madeFolder(t, made)
  const server = await startEmbedded(optionsFor(dir))
  await query(server.superuserUrl, `create table kept as select 'yes' as word`)
  // A busy session notices the death of its server late.
  const busy = assert.rejects(query(server.superuserUrl, 'select pg_sleep(1)'))
  await sleep(100)
  // Its child process does not keep this process running.
  const alive = setInterval(() => {}, 1_000)
  t.after(() => clearInterval(alive))
  process.kill(await postmasterOf(dir), 'SIGKILL')
  const { code, log } = await server.died
  assert.equal(code, null)
  assert.match(log, /ready to accept connections/)
  await server.stop()
  const next = await startEmbedded(optionsFor(dir))
  assert.deepEqual(await query(next.superuserUrl, 'table kept'), [{ word: 'yes' }])
  await busy
})

test('a server that was stopped is not reported as dead', async (t) => {
  const server = await startEmbedded(optionsFor(await madeFolder(t, made)))
  await Promise.all([server.stop(), server.stop()])
  assert.equal(await Promise.race([server.died, sleep(50, 'silence')]), 'silence')
})

test('Ctrl-C at the terminal does not end the server before its parent stops it', async (t) => {
  const dir = await madeFolder(t, made)
  const child = await startInChild(t, dir, { before: `process.on('SIGINT', () => {})` })
  child.kill('SIGINT')
  await sleep(200)
  assert.deepEqual(await query(child.url, 'select 1 as one'), [{ one: 1 }])
})

for (const victim of ['the parent', 'initdb and the parent']) {
  test(`${victim} killed by SIGKILL during initdb leaves a folder that can be started`, async (t) => {
    const dir = await newFolder(t)
    const child = spawnStarter(dir)
    for await (const line of createInterface({ input: child.stdout })) if (line.includes('initdb')) break
    await eventually(async () => (await entriesOf(path.join(dir, `init-${child.pid}`, 'data'))).length > 20)
    if (victim !== 'the parent') process.kill(await initdbOf(dir), 'SIGKILL')
    child.kill('SIGKILL')
    await once(child, 'exit')
    const server = await startEmbedded(optionsFor(dir))
    assert.deepEqual(await query(server.superuserUrl, 'select 1 as one'), [{ one: 1 }])
    await server.stop()
    assert.deepEqual((await readdir(dir)).sort(), ['data', 'lock', 'server.log'])
  })
}

test('the next start removes the temporary socket folder of a killed process', async (t) => {
  const dir = await newFolder(t, 'long'.repeat(30))
  const child = await startInChild(t, dir)
  const socket = await readlink(path.join(dir, 'socket'))
  child.process.kill('SIGKILL')
  const server = await startEmbedded(optionsFor(dir))
  await assert.rejects(lstat(socket), { code: 'ENOENT' })
  await server.stop()
})

/** By its work folder on the command line; `ps` because macOS has no /proc. */
async function initdbOf(dir: string): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-axww', '-o', 'pid=,args='])
  const line = stdout.split('\n').find((line) => line.includes('initdb --pgdata') && line.includes(dir))
  return Number.parseInt(line ?? '', 10)
}

async function entriesOf(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => [])
}
