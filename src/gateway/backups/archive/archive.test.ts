import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { zstdCompressSync } from 'node:zlib'
import tar from 'tar-stream'
import { removeFolder } from '#test/temporary-folder.ts'
import { type Entry, packArchive, textEntry, unpackArchive } from './archive.ts'

const home = await mkdtemp(path.join(tmpdir(), 'gatehouse-archive-'))
after(() => removeFolder(home))

async function unpack(source: AsyncIterable<Buffer>) {
  const folder = await mkdtemp(path.join(home, 'unpacked-'))
  const texts: Record<string, string> = {}
  const onText = async (name: string, text: string) => {
    texts[name] = text
  }
  await unpackArchive(source, { folder, onText })
  return { folder, texts }
}

async function* entries(...list: readonly Entry[]): AsyncGenerator<Entry> {
  yield* list
}

test('files and folders come back, with their modes and contents', async () => {
  const big = Buffer.alloc(1_000_003, 'page')
  const content = async function* () {
    yield big.subarray(0, 500_000)
    yield big.subarray(500_000)
  }
  const packed = packArchive(
    entries(
      textEntry('backup.json', '{}'),
      { kind: 'folder', name: 'data/pg_wal' },
      { kind: 'file', name: 'data/base/5/1259', size: big.length, content: content() },
      { kind: 'file', name: 'data/base/5/1259_vm', size: 0, content: [] },
    ),
  )
  const { folder, texts } = await unpack(packed)
  assert.deepEqual(texts, { 'backup.json': '{}' })
  assert.ok((await readFile(path.join(folder, 'data/base/5/1259'))).equals(big))
  assert.deepEqual((await readdir(path.join(folder, 'data'))).toSorted(), ['base', 'pg_wal'])
  assert.equal((await stat(path.join(folder, 'data/base/5/1259'))).mode & 0o777, 0o600)
})

test('the cause of a failed entry is the error of the archive, and no reader hangs', async () => {
  const failing = async function* (): AsyncGenerator<Entry> {
    yield textEntry('backup.json', '{}')
    throw new Error('the server has gone')
  }
  await assert.rejects(Array.fromAsync(packArchive(failing())), /the server has gone/)
  for await (const _ of packArchive(entries(textEntry('backup.json', 'x'.repeat(1_000_000))))) break
})

/** An archive that we would not write. */
async function* crafted(
  headers: readonly (tar.Header | Partial<tar.Header>)[],
  manifest?: object,
): AsyncGenerator<Buffer> {
  const pack = tar.pack()
  const content = 'content'
  const sha256 = createHash('sha256').update(content).digest('hex')
  for (const header of headers)
    pack.entry({ name: '', ...header }, header.type === undefined || header.type === 'file' ? content : '')
  const files = headers
    .filter(({ type = 'file' }) => type === 'file')
    .map(({ name = '' }) => [name, { size: 7, sha256 }])
  pack.entry({ name: 'manifest.json' }, JSON.stringify(manifest ?? Object.fromEntries(files)))
  pack.finalize()
  const bytes: Buffer[] = []
  for await (const chunk of pack) bytes.push(chunk as Buffer)
  yield zstdCompressSync(Buffer.concat(bytes))
}

test('names that leave the folder, links, devices and repeated names are refused', async () => {
  const refused: readonly Partial<tar.Header>[][] = [
    [{ name: '../evil' }],
    [{ name: 'data/../../evil' }],
    [{ name: '/etc/evil' }],
    [{ name: 'data/./x' }],
    [{ name: 'data//x' }],
    [{ name: 'data/..', type: 'directory' }],
    [{ name: 'data/a\\..\\b' }],
    [{ name: 'data/-rf' }],
    [{ name: `data/${'x'.repeat(300)}` }],
    [{ name: 'elsewhere' }],
    [{ name: 'data/link', type: 'symlink', linkname: '/etc/passwd' }],
    [{ name: 'data/hard', type: 'link', linkname: 'data/PG_VERSION' }],
    [{ name: 'data/fifo', type: 'fifo' }],
    [{ name: 'data/disk', type: 'block-device' }],
    [{ name: 'data/x' }, { name: 'data/x' }],
  ]
  for (const headers of refused)
    await assert.rejects(unpack(crafted(headers)), /cannot be read/, JSON.stringify(headers))
  assert.deepEqual(
    (await readdir(home)).filter((name) => !name.startsWith('unpacked-')),
    [],
  )
  await unpack(crafted([{ name: 'data/PG_VERSION' }]))
})

test('a manifest that is missing, or differs from the files, is refused', async () => {
  const one = [{ name: 'data/x' }]
  const wrong = { size: 7, sha256: '0'.repeat(64) }
  await assert.rejects(unpack(crafted(one, {})), /data\/x differs/)
  await assert.rejects(unpack(crafted(one, { 'data/x': wrong })), /data\/x differs/)
  await assert.rejects(unpack(crafted([], { 'data/x': wrong })), /data\/x differs/)
  const whole = await Array.fromAsync(crafted(one))
  await assert.rejects(
    unpack(entriesOf(whole.map((bytes) => bytes.subarray(0, bytes.length / 2)))),
    /cannot be read/,
  )
})

async function* entriesOf(pieces: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* pieces
}
