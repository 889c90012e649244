import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cp, mkdir, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { removeFolder } from '#test/temporary-folder.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

test('as an installed package the program says in one sentence that it does not run so, and how it does', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-installed-'))
  after(() => removeFolder(folder))
  const installed = path.join(folder, 'node_modules', 'gatehouse')
  await mkdir(installed, { recursive: true })
  for (const part of ['bin', 'src', 'package.json'])
    await cp(path.join(ROOT, part), path.join(installed, part), { recursive: true })
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [path.join(installed, 'bin/gatehouse.mjs'), '--version'],
    { encoding: 'utf8' },
  )
  assert.deepEqual([status, stdout], [1, ''])
  assert.match(stderr, /^Gatehouse does not run as an installed package yet, .*`npm start`.*\n$/)
})
