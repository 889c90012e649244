import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { Random } from '#kernel/random.ts'
import type { Secrets } from '#kernel/secrets.ts'
import { ArchiveError } from './archive-error.ts'

/**
 * A stream sealed in chunks (docs/decisions, "Sealed archives"): AES-256-GCM by the STREAM construction of Hoang, Reyhanitabar, Rogaway and
 * Vizár (2015). The nonce of a chunk is its number and whether it is the last one, so a chunk that was moved, repeated, left out or cut off
 * does not open. Each archive has a key of its own, derived from the secret and the salt in its header; the header is authenticated with
 * every chunk.
 *
 * Header, 49 bytes: `GHBACKUP`, version (1 byte), key id (8 ASCII characters), salt (32 bytes). Then chunks of 65,536 bytes, the last one
 * shorter or equal, each followed by its tag (16 bytes).
 */
const MAGIC = 'GHBACKUP'
const VERSION = 1
const KEY_ID = { from: 9, to: 17 }
const HEADER = 49
const CHUNK = 65_536
const TAG = 16
/** 32 bits count the chunks. */
const MAX_CHUNKS = 2 ** 32

export async function* sealStream(
  { secrets, random }: { readonly secrets: Secrets; readonly random: Random },
  source: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  const header = Buffer.concat([
    Buffer.from(MAGIC),
    Buffer.of(VERSION),
    Buffer.from(secrets.keyId),
    random(HEADER - KEY_ID.to),
  ])
  yield header
  const key = keyOf(secrets, header, 'current')
  for await (const { number, isLast, bytes } of chunksOf(source, CHUNK)) {
    const cipher = createCipheriv('aes-256-gcm', key, nonceOf(number, isLast)).setAAD(header)
    yield Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
  }
}

/** Yields only what is authentic, and returns only after the last chunk: use nothing of it before that. */
export async function* openStream(
  secrets: Secrets,
  source: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer, void, undefined> {
  const { header, rest } = await headerOf(source)
  const age = expectOurs(secrets, header)
  const key = keyOf(secrets, header, age)
  for await (const { number, isLast, bytes } of chunksOf(rest, CHUNK + TAG)) {
    yield openChunk(key, header, nonceOf(number, isLast), bytes)
  }
}

function openChunk(key: Buffer, header: Buffer, nonce: Buffer, sealed: Buffer): Buffer {
  if (sealed.length < TAG) throw damaged()
  const decipher = createDecipheriv('aes-256-gcm', key, nonce).setAAD(header)
  decipher.setAuthTag(sealed.subarray(-TAG))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(0, -TAG)), decipher.final()])
  } catch {
    throw damaged()
  }
}

const damaged = () =>
  new ArchiveError(
    'The archive is damaged: it was cut off or changed after it was written. Use another copy.',
  )

/** Which of our secrets has sealed it. */
function expectOurs(secrets: Secrets, header: Buffer): 'current' | 'previous' {
  if (header.toString('latin1', 0, 5) === 'PGDMP')
    throw new ArchiveError(
      'The file is a dump of one database (pg_dump), not an archive of the embedded server: restore it with ' +
        'POST /admin/backups/{id}/restore, or with pg_restore.',
    )
  if (header.length < HEADER || header.toString('latin1', 0, MAGIC.length) !== MAGIC)
    throw new ArchiveError('The file is not a backup of Gatehouse.')
  const version = header.readUInt8(MAGIC.length)
  if (version !== VERSION)
    throw new ArchiveError(
      `The archive has format ${version}, and this version of Gatehouse reads ${VERSION}.`,
    )
  const id = header.toString('latin1', KEY_ID.from, KEY_ID.to)
  const age = secrets.ageOf(id)
  if (age === undefined)
    throw new ArchiveError(
      `The archive was sealed with another secret (key id ${/^[0-9a-f]{8}$/.test(id) ? id : 'unreadable'}, here ` +
        `${secrets.keyId}): name the file of that secret with --secret-file, or set SERVICE_SECRET to it.`,
    )
  return age
}

/** 32 bytes: HKDF-SHA-256 of the secret for this purpose, then HMAC-SHA-256 of the header. */
const keyOf = (secrets: Secrets, header: Buffer, age: 'current' | 'previous'): Buffer =>
  Buffer.from(secrets.derive('backup', header.toString('hex'), age), 'base64url')

function nonceOf(number: number, isLast: boolean): Buffer {
  if (number >= MAX_CHUNKS) throw new ArchiveError('The archive is longer than 256 TiB.')
  const nonce = Buffer.alloc(12)
  nonce.writeUInt32BE(number, 7)
  nonce.writeUInt8(isLast ? 1 : 0, 11)
  return nonce
}

type Chunk = { readonly number: number; readonly isLast: boolean; readonly bytes: Buffer }

/** Pieces of one length; the last one may be shorter, and is empty only if the stream is. */
export async function* chunksOf(source: AsyncIterable<Buffer>, length: number): AsyncGenerator<Chunk> {
  let number = 0
  let held: Buffer[] = []
  let size = 0
  for await (const piece of source) {
    held.push(piece)
    size += piece.length
    if (size <= length) continue
    const all = Buffer.concat(held)
    let at = 0
    for (; size - at > length; at += length)
      yield { number: number++, isLast: false, bytes: all.subarray(at, at + length) }
    held = [all.subarray(at)]
    size -= at
  }
  yield { number, isLast: true, bytes: Buffer.concat(held) }
}

async function headerOf(
  source: AsyncIterable<Buffer>,
): Promise<{ readonly header: Buffer; readonly rest: AsyncIterable<Buffer> }> {
  const pieces = source[Symbol.asyncIterator]()
  let held = Buffer.alloc(0)
  while (held.length < HEADER) {
    const next = await pieces.next()
    if (next.done === true) break
    held = Buffer.concat([held, next.value])
  }
  const rest = async function* () {
    try {
      yield held.subarray(HEADER)
      for (let next = await pieces.next(); next.done !== true; next = await pieces.next()) yield next.value
    } finally {
      await pieces.return?.()
    }
  }
  return { header: Buffer.from(held.subarray(0, HEADER)), rest: rest() }
}
