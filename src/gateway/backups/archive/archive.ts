import { createHash } from 'node:crypto'
import { type FileHandle, mkdir, open } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress, createZstdDecompress } from 'node:zlib'
import tar from 'tar-stream'
import { Failure } from '#kernel/errors.ts'
import { ArchiveError } from './archive-error.ts'

/** A file or folder to be archived. `content` yields exactly `size` bytes. */
export type Entry = { readonly kind: 'folder'; readonly name: string } | FileEntry
type FileEntry = {
  readonly kind: 'file'
  readonly name: string
  readonly size: number
  readonly content: AsyncIterable<Buffer> | Iterable<Buffer>
}

export const textEntry = (name: string, text: string): FileEntry => {
  const bytes = Buffer.from(text)
  return { kind: 'file', name, size: bytes.length, content: [bytes] }
}

/** The last entry: every file with its length and SHA-256. */
const MANIFEST = 'manifest.json'
/** Bytes of an entry that is read into memory. */
const MAX_TEXT_BYTES = 256 * 1024 * 1024

type FileDigest = { readonly size: number; readonly sha256: string }
type Manifest = Readonly<Record<string, FileDigest>>

/** A compressed tar archive of the entries and their manifest, as a stream. It reads as fast as it is read. */
export async function* packArchive(entries: AsyncIterable<Entry>): AsyncGenerator<Buffer> {
  const pack = tar.pack()
  const compressed = createZstdCompress()
  const writing = addAll(pack, entries).catch((error: unknown) => {
    pack.destroy(error instanceof Error ? error : new Error(String(error)))
    throw error
  })
  const piping = pipeline(pack, compressed)
  // Both are awaited below; one may fail before that.
  writing.catch(() => {})
  piping.catch(() => {})
  try {
    yield* compressed as AsyncIterable<Buffer>
    await piping
    await writing
  } catch (error) {
    // The cause is in `writing`: the streams only tell that they were destroyed.
    await writing
    throw error
  } finally {
    pack.destroy()
    compressed.destroy()
  }
}

async function addAll(pack: tar.Pack, entries: AsyncIterable<Entry>): Promise<void> {
  const manifest: Record<string, FileDigest> = {}
  for await (const entry of entries) {
    if (entry.kind === 'folder')
      await addEntry(pack, { name: `${entry.name}/`, type: 'directory', mode: 0o700 })
    else manifest[entry.name] = await addFile(pack, entry)
  }
  await addFile(pack, textEntry(MANIFEST, JSON.stringify(manifest)))
  pack.finalize()
}

/** Adds one entry. `write` sends its content; both end when the archive is closed. */
async function addEntry(
  pack: tar.Pack,
  header: Parameters<tar.Pack['entry']>[0],
  write: (sink: ReturnType<tar.Pack['entry']>, closed: Promise<void>) => Promise<void> = async () => {},
): Promise<void> {
  const { promise: added, resolve, reject } = Promise.withResolvers<void>()
  added.catch(() => {})
  const closed = () => reject(new Error('the archive was closed'))
  pack.once('close', closed)
  try {
    const sink = pack.entry(header, (error) => (error ? reject(error) : resolve()))
    await write(sink, added)
    await added
  } finally {
    pack.off('close', closed)
  }
}

async function addFile(pack: tar.Pack, { name, size, content }: FileEntry): Promise<FileDigest> {
  const hash = createHash('sha256')
  await addEntry(pack, { name, size, mode: 0o600, type: 'file' }, async (sink, closed) => {
    for await (const chunk of content) {
      hash.update(chunk)
      if (!sink.write(chunk)) await Promise.race([drained(sink), closed])
    }
    sink.end(undefined)
  })
  return { size, sha256: hash.digest('hex') }
}

const drained = (sink: ReturnType<tar.Pack['entry']>): Promise<void> =>
  new Promise((resolve) => void sink.once('drain', () => resolve()))

/** Where the entries of an archive go, and how much may be written. */
type UnpackTarget = {
  /** An empty folder. */
  readonly folder: string
  /** Called with the text of each entry outside `data/`, in order; throws to refuse the archive. */
  readonly onText: (name: string, text: string) => Promise<void>
}

/**
 * Writes an archive into a folder. Only names of PostgreSQL's own form are accepted, no links and no devices; every file is compared with the
 * manifest, which must be the last entry and name exactly these files.
 */
export async function unpackArchive(source: AsyncIterable<Buffer>, unpacking: UnpackTarget): Promise<void> {
  const extract = tar.extract()
  const piping = pipeline(Readable.from(source), createZstdDecompress(), extract)
  piping.catch(() => {})
  const seen = new Map<string, FileDigest>()
  let manifest: Manifest | undefined
  try {
    for await (const entry of extract) {
      if (manifest !== undefined) throw unreadable('an entry follows the manifest')
      const name = expectName(entry.header)
      if (seen.has(name)) throw unreadable(`${name} is there twice`)
      if (entry.header.type === 'directory') {
        await mkdir(path.join(unpacking.folder, name), { mode: 0o700, recursive: true })
        entry.resume()
      } else if (name.startsWith('data/')) {
        seen.set(name, await writeEntry(path.join(unpacking.folder, name), entry))
      } else {
        const { text, digest } = await readEntry(entry)
        if (name === MANIFEST)
          manifest = JSON.parse(text) as Manifest // authentic: we have written it
        else {
          seen.set(name, digest)
          await unpacking.onText(name, text)
        }
      }
    }
    await piping
  } catch (error) {
    // A failure of the source (a chunk that does not open) is the cause of all others.
    await piping.catch((cause: unknown) => {
      if (cause instanceof ArchiveError || cause instanceof Failure) throw cause
    })
    throw error instanceof ArchiveError || isOfTheDisk(error) ? error : unreadable(String(error))
  }
  expectComplete(seen, manifest)
}

const isOfTheDisk = (error: unknown): boolean => error instanceof Error && 'syscall' in error

const unreadable = (why: string) => new ArchiveError(`The archive cannot be read: ${why}.`)

/** Text entries of the archive besides the manifest. */
const TEXTS = new Set(['backup.json', 'postgres-password', MANIFEST])
const DATA_NAME = /^data(\/[A-Za-z0-9_][A-Za-z0-9_.-]*){0,12}$/

function expectName({ name, type }: tar.Header): string {
  const plain = type === 'directory' ? name.replace(/\/$/, '') : name
  if (type !== 'file' && type !== 'directory')
    throw unreadable(`it contains an entry of type ${String(type)}`)
  const isKnown =
    type === 'file' ? TEXTS.has(plain) || (DATA_NAME.test(plain) && plain !== 'data') : DATA_NAME.test(plain)
  if (!isKnown || plain.length > 255)
    throw unreadable('it contains a file with a name that no data folder has')
  return plain
}

/** Its chunks are buffers, since the stream has no encoding. */
type ArchivedFile = AsyncIterable<unknown> & { readonly header: tar.Header }
const chunksOf = (entry: ArchivedFile) => entry as AsyncIterable<Buffer>

/** Without fsync: the server syncs the whole folder before it recovers from a backup. */
async function writeEntry(file: string, entry: ArchivedFile): Promise<FileDigest> {
  await mkdir(path.dirname(file), { mode: 0o700, recursive: true })
  const hash = createHash('sha256')
  let size = 0
  await using handle: FileHandle = await open(file, 'wx', 0o600)
  for await (const chunk of chunksOf(entry)) {
    hash.update(chunk)
    size += chunk.length
    await handle.writeFile(chunk)
  }
  return { size, sha256: hash.digest('hex') }
}

async function readEntry(
  entry: ArchivedFile,
): Promise<{ readonly text: string; readonly digest: FileDigest }> {
  if ((entry.header.size ?? 0) > MAX_TEXT_BYTES) throw unreadable(`${entry.header.name} is too long`)
  const chunks: Buffer[] = []
  for await (const chunk of chunksOf(entry)) chunks.push(chunk)
  const bytes = Buffer.concat(chunks)
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  return { text: bytes.toString('utf8'), digest: { size: bytes.length, sha256 } }
}

function expectComplete(seen: ReadonlyMap<string, FileDigest>, manifest: Manifest | undefined): void {
  if (manifest === undefined) throw unreadable('it has no manifest')
  const wrong = new Set([...Object.keys(manifest), ...seen.keys()]).values().find((name) => {
    const [expected, found] = [manifest[name], seen.get(name)]
    return expected?.sha256 !== found?.sha256 || expected?.size !== found?.size
  })
  if (wrong !== undefined) throw unreadable(`${wrong} differs from the manifest`)
}
