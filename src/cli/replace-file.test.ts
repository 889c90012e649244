import assert from 'node:assert/strict'
import { chmod, mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after, beforeEach, test } from 'node:test'
import { createTemporaryFolder, removeFolder } from '#test/temporary-folder.ts'
import { replaceFile } from './replace-file.ts'
import { sentenceOf } from './terminal.ts'

const folders: string[] = []
let folder = ''
beforeEach(async () => {
  folder = await createTemporaryFolder()
  folders.push(folder)
})
after(() => Promise.all(folders.map(removeFolder)))
const at = (...names: string[]) => path.join(folder, ...names)

test('a link stays one, and its file gets the text, also one that does not exist yet', async () => {
  await mkdir(at('real'))
  await writeFile(at('real/one.ts'), 'old')
  await symlink('real/one.ts', at('one.ts'))
  await symlink('one.ts', at('again.ts'))
  await symlink('real/two.ts', at('two.ts'))
  await replaceFile(at('again.ts'), 'new')
  await replaceFile(at('two.ts'), 'first')
  assert.deepEqual([await readlink(at('again.ts')), await readlink(at('two.ts'))], ['one.ts', 'real/two.ts'])
  assert.equal(await readFile(at('real/one.ts'), 'utf8'), 'new')
  assert.equal(await readFile(at('real/two.ts'), 'utf8'), 'first')
  assert.deepEqual((await readdir(at('real'))).sort(), ['one.ts', 'two.ts'])
})

test('a file keeps its mode, and one that is read-only stays as it is', async () => {
  await writeFile(at('file.ts'), 'old', { mode: 0o640 })
  await replaceFile(at('file.ts'), 'new')
  assert.equal((await stat(at('file.ts'))).mode & 0o777, 0o640)
  await chmod(at('file.ts'), 0o444)
  const refused = await replaceFile(at('file.ts'), 'newer').catch(sentenceOf)
  assert.equal(refused, `${at('file.ts')} is read-only.`)
  assert.equal(await readFile(at('file.ts'), 'utf8'), 'new')
  assert.deepEqual(await readdir(folder), ['file.ts'])
})

test('what is no file is not replaced, and a problem is told by the name of the file', async () => {
  assert.equal(await replaceFile(folder, 'x').catch(sentenceOf), `${folder} is not a file.`)
  assert.equal(await replaceFile('/dev/null', 'x').catch(sentenceOf), '/dev/null is not a file.')
  const nowhere = await replaceFile(at('missing/file.ts'), 'x').catch(sentenceOf)
  assert.equal(nowhere, `${at('missing/file.ts')} does not exist.`)
  await symlink('loop.ts', at('loop.ts'))
  assert.match(
    String(await replaceFile(at('loop.ts'), 'x').catch(sentenceOf)),
    /loop\.ts cannot be used .*ELOOP/,
  )
  await symlink('file.ts', at('file.ts.part'))
  await replaceFile(at('file.ts'), 'x')
  assert.deepEqual((await readdir(folder)).sort(), ['file.ts', 'file.ts.part', 'loop.ts'])
})

test('several that write one file at the same time leave one of their texts, and nothing else', async () => {
  const texts = Array.from({ length: 20 }, (_, index) => `${index}`.repeat(100_000))
  await Promise.all(texts.map((text) => replaceFile(at('file.ts'), text)))
  assert.ok(texts.includes(await readFile(at('file.ts'), 'utf8')))
  assert.deepEqual(await readdir(folder), ['file.ts'])
})
