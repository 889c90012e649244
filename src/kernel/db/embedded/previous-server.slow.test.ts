import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after, test } from 'node:test'
import { startEmbedded } from '#kernel/db/embedded.ts'
import {
  eventually,
  madeFolder,
  newFolder,
  optionsFor,
  postmasterOf,
  query,
  startInChild,
  templateFolder,
} from '#test/embedded.ts'
import { describeByPs } from './pid-file.ts'

const made = await templateFolder(after)

test('a second start on the same folder is refused; the error names the folder and the process', async (t) => {
  const dir = await madeFolder(t, made)
  const server = await startEmbedded(optionsFor(dir))
  const postmaster = await postmasterOf(dir)
  await assert.rejects(startInChild(t, dir), {
    message: new RegExp(`already runs on ${dir} \\(process ${postmaster}\\)`),
  })
  assert.deepEqual(await query(server.superuserUrl, 'select 1 as one'), [{ one: 1 }])
})

test('of two concurrent first starts, one gets the folder and the other the same error', async (t) => {
  const dir = await newFolder(t)
  const starts = await Promise.allSettled([startInChild(t, dir), startInChild(t, dir)])
  const won = starts.filter((start) => start.status === 'fulfilled')
  const lost = starts.filter((start) => start.status === 'rejected')
  assert.equal(won.length, 1)
  assert.match(String(lost[0]?.reason), /already runs on/)
  assert.deepEqual(await query(won[0]?.value.url ?? '', 'select 1 as one'), [{ one: 1 }])
})

const leftBy: Record<string, (t: { after(fn: () => unknown): void }) => Promise<string>> = {
  'a process that is dead': async () => `${await deadProcess()}`,
  'a process whose number another one has now': async () => `${process.pid}`,
  'a zombie': async (t) => `${await zombie(t)}`,
  'a power cut, empty': async () => '',
}

for (const [whom, pidOf] of Object.entries(leftBy)) {
  test(`a lock file left by ${whom} does not stop the next start`, async (t) => {
    const dir = await madeFolder(t, made)
    const pid = await pidOf(t)
    const data = path.join(dir, 'data')
    const lock = pid && `${pid}\n${data}\n1700000000\n5432\n${dir}\n\n  1234567         1\nready   \n`
    await writeFile(path.join(data, 'postmaster.pid'), lock)
    await writeFile(path.join(dir, '.s.PGSQL.5432.lock'), lock.slice(0, lock.indexOf('\n  ')))
    await (await startEmbedded(optionsFor(dir))).stop()
    await assert.rejects(stat(path.join(data, 'postmaster.pid')), { code: 'ENOENT' })
  })
}

test('ps identifies a server by its folder, as /proc does', async (t) => {
  if (!(await hasPs())) return t.skip('needs the command ps')
  const dir = await madeFolder(t, made)
  await startEmbedded(optionsFor(dir))
  const facts = await describeByPs(await postmasterOf(dir))
  assert.equal(facts?.isZombie, false)
  assert.match(facts?.command ?? '', new RegExp(`-D ${dir}/data `))
  assert.equal((await describeByPs(await zombie(t)))?.isZombie, true)
  assert.equal(await describeByPs(await deadProcess()), undefined)
})

async function deadProcess(): Promise<number> {
  const child = spawn('true')
  await once(child, 'exit')
  return child.pid ?? 0
}

/** The child of a process that never waits for it. */
async function zombie(t: { after(fn: () => unknown): void }): Promise<number> {
  const parent = spawn('sh', ['-c', 'sleep 0.1 & echo $!; exec sleep 60'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => parent.kill())
  const [pid] = await once(parent.stdout, 'data')
  await eventually(async () => (await describeByPs(Number(pid)))?.isZombie === true)
  return Number(pid)
}

async function hasPs(): Promise<boolean> {
  const child = spawn('ps', ['-p', '1'], { stdio: 'ignore' })
  return Promise.race([once(child, 'exit').then(() => true), once(child, 'error').then(() => false)])
}
