import assert from 'node:assert/strict'
import { mkdir, readdir, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after, test } from 'node:test'
import { startEmbedded } from '#kernel/db/embedded.ts'
import { madeFolder, newFolder, optionsFor, templateFolder } from '#test/embedded.ts'
import { findInterrupted, replaceData } from './replacement.ts'

const made = await templateFolder(after)
const databasesIn = async (dir: string) =>
  (await readdir(dir)).filter((name) => /^(data|restore)/.test(name)).toSorted()
const move = (dir: string, from: string, to: string) => rename(path.join(dir, from), path.join(dir, to))

test('a start completes a restore that had set the former database aside, and undoes an earlier one', async (t) => {
  const completed = await madeFolder(t, made)
  await move(completed, 'data', 'data-restored')
  await mkdir(path.join(completed, 'data-before-restore-20260131T120000Z'))
  await mkdir(path.join(completed, 'restore-abcdef'))
  assert.equal(findInterrupted(completed)?.isComplete, true)
  await (await startEmbedded(optionsFor(completed))).stop()
  assert.deepEqual(await databasesIn(completed), ['data', 'data-before-restore-20260131T120000Z'])

  const undone = await madeFolder(t, made)
  for (const copy of ['data-restored', 'restore-abcdef', 'restore-undone'])
    await mkdir(path.join(undone, copy, 'base'), { recursive: true })
  assert.equal(findInterrupted(undone), undefined)
  await (await startEmbedded(optionsFor(undone))).stop()
  assert.deepEqual(await databasesIn(undone), ['data'])
})

test('no new database is made where a restore has left none', async (t) => {
  for (const [left, advice] of [
    ['restore-abcdef', /run gatehouse restore again, or remove restore-abcdef in it/],
    ['data-before-restore-20260131T120000Z', /or rename data-before-restore-20260131T120000Z in it to data/],
  ] as const) {
    const dir = await newFolder(t)
    await mkdir(path.join(dir, left), { recursive: true })
    await assert.rejects(startEmbedded(optionsFor(dir)), advice)
    assert.deepEqual(await databasesIn(dir), [left])
  }
})

test('a database that is replaced is kept under a name of its own', async (t) => {
  const dir = await newFolder(t)
  for (const word of ['one', 'two', 'three']) {
    await mkdir(path.join(dir, 'work/data'), { recursive: true })
    await writeFile(path.join(dir, 'work/data/word'), word)
    await replaceData(dir, path.join(dir, 'work/data'))
  }
  const names = await databasesIn(dir)
  assert.equal(names.length, 3, names.join())
  assert.equal(names[0], 'data')
})
