import { hash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { crc32 } from 'node:zlib'

/**
 * The file of `auth.email_password.breach_check_file` (decision 61), in little-endian order:
 *
 *     8 bytes        the magic text
 *     4 bytes        CRC-32 of the index
 *     65537 × 4      index: for each prefix of 16 bits the number of its first record; at last the number of all records
 *     4 bytes each   records: bits 16 to 47 of the SHA-1, each prefix in ascending order
 */
export const MAGIC = Buffer.from('GHBREAC1')
export const PREFIXES = 65_536
export const INDEX_AT = MAGIC.length + 4
export const INDEX_BYTES = (PREFIXES + 1) * 4
export const RECORDS_AT = INDEX_AT + INDEX_BYTES
export const RECORD_BYTES = 4

/** Whether the list has the password. Three short reads; it costs no memory by the size of the file, and sees a replaced file at once. */
export async function isInList(file: string, password: string): Promise<boolean> {
  const digest = hash('sha1', password, 'buffer')
  const handle = await open(file)
  try {
    await expectMagic(handle)
    const range = await readAt(handle, INDEX_AT + digest.readUInt16BE(0) * 4, 8)
    const [from, to] = [range.readUInt32LE(0), range.readUInt32LE(4)]
    if (to < from) throw new BreachListError('is damaged: its index is not in order')
    const records = await readAt(handle, RECORDS_AT + from * RECORD_BYTES, (to - from) * RECORD_BYTES)
    return hasRecord(records, digest.readUInt32BE(2))
  } finally {
    await handle.close()
  }
}

/** Throws if the file cannot be read, is no list, or is damaged so far as its index and length show. */
export async function expectBreachList(file: string): Promise<void> {
  const handle = await open(file)
  try {
    await expectMagic(handle)
    const index = await readAt(handle, INDEX_AT, INDEX_BYTES)
    const checksum = (await readAt(handle, MAGIC.length, 4)).readUInt32LE(0)
    if (crc32(index) !== checksum) throw new BreachListError('is damaged: its index has another checksum')
    const bytes = RECORDS_AT + index.readUInt32LE(PREFIXES * 4) * RECORD_BYTES
    if ((await handle.stat()).size !== bytes)
      throw new BreachListError(`is not complete: it needs ${bytes} bytes`)
  } finally {
    await handle.close()
  }
}

export class BreachListError extends Error {
  override name = 'BreachListError'
}

async function expectMagic(handle: FileHandle): Promise<void> {
  const magic = await readAt(handle, 0, MAGIC.length)
  if (!magic.equals(MAGIC)) throw new BreachListError('is no list of gatehouse breach-list build')
}

async function readAt(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, position)
  if (bytesRead < length) throw new BreachListError('is no complete list: it ends too early')
  return buffer
}

function hasRecord(records: Buffer, wanted: number): boolean {
  let [low, high] = [0, records.length / RECORD_BYTES]
  while (low < high) {
    const middle = (low + high) >>> 1
    const found = records.readUInt32LE(middle * RECORD_BYTES)
    if (found === wanted) return true
    if (found < wanted) low = middle + 1
    else high = middle
  }
  return false
}
