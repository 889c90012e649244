import { appendFile, mkdtemp, open, readFile, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { crc32 } from 'node:zlib'
import {
  BreachListError,
  INDEX_AT,
  INDEX_BYTES,
  MAGIC,
  PREFIXES,
  RECORD_BYTES,
  RECORDS_AT,
} from './breach-list.ts'
import { createHashReader } from './hash-lines.ts'

/** Hashes are divided by their first byte, so that a part of a billion of them is sorted in 40 MB. */
const PARTS = 256
const PREFIXES_OF_PART = PREFIXES / PARTS
/** Hashes that wait in memory for one part; one chunk of a file has fewer. */
const BUFFERED = 8_192
/** The index has 32 bits for each number. */
const MAX_HASHES = 2 ** 32 - 1

export type BuiltList = { readonly hashes: number; readonly bytes: number }

type Options = { readonly out: string; readonly signal: AbortSignal }

/**
 * Writes the list of hashes in HIBP's form, in any order. Parts are written beside `out` first, with 8 bytes a hash; `out` is replaced at
 * once when the list is complete.
 */
export async function buildBreachList(
  chunks: AsyncIterable<Buffer>,
  { out, signal }: Options,
): Promise<BuiltList> {
  const folder = await mkdtemp(path.resolve(`${out}.parts-`))
  const unfinished = path.join(folder, 'list')
  try {
    const parts = await divide(chunks, folder)
    signal.throwIfAborted()
    const built = await writeList(unfinished, parts, signal)
    await rename(unfinished, out)
    return built
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The files of the parts; undefined for one without hashes. */
async function divide(chunks: AsyncIterable<Buffer>, folder: string): Promise<(string | undefined)[]> {
  const files = Array.from({ length: PARTS }, (_, part) => path.join(folder, `${part}`))
  const waiting = files.map((): number[] => [])
  const written = new Set<number>()
  const flush = async (part: number, hashes: number[]) => {
    written.add(part)
    await appendFile(files[part] ?? '', new Uint8Array(Float64Array.from(hashes).buffer))
    hashes.length = 0
  }
  const reader = createHashReader((hash) => waiting[Math.floor(hash / 2 ** 40)]?.push(hash))
  for await (const chunk of chunks) {
    reader.read(chunk)
    for (const [part, hashes] of waiting.entries()) if (hashes.length >= BUFFERED) await flush(part, hashes)
  }
  reader.end()
  for (const [part, hashes] of waiting.entries()) if (hashes.length > 0) await flush(part, hashes)
  return files.map((file, part) => (written.has(part) ? file : undefined))
}

async function writeList(
  file: string,
  parts: readonly (string | undefined)[],
  signal: AbortSignal,
): Promise<BuiltList> {
  const index = Buffer.alloc(INDEX_BYTES)
  const handle = await open(file, 'wx')
  try {
    let hashes = 0
    for (const [part, from] of parts.entries()) {
      signal.throwIfAborted()
      const sorted = from === undefined ? new Float64Array() : await sortedHashes(from)
      const records = recordsOf(sorted, (prefix, before) =>
        index.writeUInt32LE(hashes + before, (part * PREFIXES_OF_PART + prefix) * 4),
      )
      await writeAll(handle, records, RECORDS_AT + hashes * RECORD_BYTES)
      hashes += sorted.length
      if (hashes > MAX_HASHES) throw new BreachListError(`has more than ${MAX_HASHES} hashes`)
    }
    index.writeUInt32LE(hashes, PREFIXES * 4)
    const head = Buffer.alloc(INDEX_AT)
    MAGIC.copy(head)
    head.writeUInt32LE(crc32(index), MAGIC.length)
    await writeAll(handle, Buffer.concat([head, index]), 0)
    await handle.sync()
    return { hashes, bytes: RECORDS_AT + hashes * RECORD_BYTES }
  } finally {
    await handle.close()
  }
}

type Opened = Awaited<ReturnType<typeof open>>

/** One write may write less than it was given. */
async function writeAll(handle: Opened, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done)
    done += bytesWritten
  }
}

/** Each hash once. */
async function sortedHashes(file: string): Promise<Float64Array> {
  const { buffer, byteOffset, length } = await readFile(file)
  const hashes = new Float64Array(buffer.slice(byteOffset, byteOffset + length)).sort()
  await rm(file)
  let count = 0
  for (const hash of hashes) if (count === 0 || hash !== hashes[count - 1]) hashes[count++] = hash
  return hashes.subarray(0, count)
}

/** The records of one part. `onPrefix` is told how many of them come before each prefix of the part. */
function recordsOf(hashes: Float64Array, onPrefix: (prefix: number, before: number) => void): Buffer {
  const records = Buffer.alloc(hashes.length * RECORD_BYTES)
  let next = 0
  for (const [number, hash] of hashes.entries()) {
    const prefix = Math.floor(hash / 2 ** 32) % PREFIXES_OF_PART
    for (; next <= prefix; next++) onPrefix(next, number)
    records.writeUInt32LE(hash % 2 ** 32, number * RECORD_BYTES)
  }
  for (; next < PREFIXES_OF_PART; next++) onPrefix(next, hashes.length)
  return records
}
