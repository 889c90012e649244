import assert from 'node:assert/strict'
import { test } from 'node:test'
import { secureRandom } from '#kernel/random.ts'
import { createSecrets } from '#kernel/secrets.ts'
import { openStream, sealStream } from './sealed-stream.ts'

const SECRET = 'secret-of-the-archive-0123456789'
const secrets = createSecrets(SECRET, secureRandom)
const HEADER = 49
const SEALED = 65_536 + 16

async function* once(bytes: Buffer, piece = 10_000): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += piece) yield bytes.subarray(at, at + piece)
}
async function all(source: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of source) pieces.push(piece)
  return Buffer.concat(pieces)
}
const seal = (bytes: Buffer) => all(sealStream({ secrets, random: secureRandom }, once(bytes)))
const open = (bytes: Buffer, by = secrets) => all(openStream(by, once(bytes)))

const plain = secureRandom(3 * 65_536 + 100)
const sealed = await seal(plain)
const chunk = (number: number) => sealed.subarray(HEADER + number * SEALED, HEADER + (number + 1) * SEALED)
const header = sealed.subarray(0, HEADER)

test('what was sealed opens again, at every length around a chunk', async () => {
  for (const length of [0, 1, 65_535, 65_536, 65_537, 131_072, 3 * 65_536 + 100]) {
    const bytes = secureRandom(length)
    assert.ok((await open(await seal(bytes))).equals(bytes), `${length} bytes`)
  }
  assert.ok(!sealed.includes(plain.subarray(0, 64)))
})

test('two archives of the same bytes have nothing in common', async () => {
  const other = await seal(plain)
  assert.ok(!other.subarray(17).includes(sealed.subarray(17, 49)))
  assert.ok(!other.includes(chunk(0).subarray(0, 64)))
})

test('an archive that was cut off, changed, reordered, repeated or joined does not open', async () => {
  const other = await seal(plain)
  const last = sealed.subarray(HEADER + 3 * SEALED)
  const flipped = (at: number) => {
    const copy = Buffer.from(sealed)
    copy.writeUInt8(copy.readUInt8(at) ^ 1, at)
    return copy
  }
  const broken: Readonly<Record<string, Buffer>> = {
    'cut at a chunk': sealed.subarray(0, HEADER + 2 * SEALED),
    'cut before the last chunk': sealed.subarray(0, HEADER + 3 * SEALED),
    'cut within a chunk': sealed.subarray(0, HEADER + SEALED + 1_000),
    'cut by one byte': sealed.subarray(0, -1),
    'only the header': header,
    'two chunks exchanged': Buffer.concat([header, chunk(1), chunk(0), chunk(2), last]),
    'a chunk left out': Buffer.concat([header, chunk(0), chunk(2), last]),
    'a chunk repeated': Buffer.concat([header, chunk(0), chunk(0), chunk(1), chunk(2), last]),
    'the last chunk repeated': Buffer.concat([sealed, last]),
    'a byte appended': Buffer.concat([sealed, Buffer.of(0)]),
    'two archives joined': Buffer.concat([sealed, other]),
    'a chunk of another archive': Buffer.concat([
      header,
      other.subarray(HEADER, HEADER + SEALED),
      sealed.subarray(HEADER + SEALED),
    ]),
    'the header of another archive': Buffer.concat([other.subarray(0, HEADER), sealed.subarray(HEADER)]),
    'a bit of a chunk': flipped(HEADER + 5_000),
    'a bit of a tag': flipped(HEADER + SEALED - 1),
    'a bit of the salt': flipped(20),
  }
  for (const [what, bytes] of Object.entries(broken)) await assert.rejects(open(bytes), /damaged/, what)
})

test('nothing is yielded before it is authenticated, and an end is never a quiet one', async () => {
  const copy = Buffer.from(sealed)
  copy.writeUInt8(copy.readUInt8(HEADER + SEALED + 3) ^ 1, HEADER + SEALED + 3)
  const got: Buffer[] = []
  await assert.rejects(async () => {
    for await (const piece of openStream(secrets, once(copy))) got.push(piece)
  })
  assert.ok(Buffer.concat(got).equals(plain.subarray(0, 65_536)))
})

test('another secret is refused in one sentence that names both keys; the previous secret still opens', async () => {
  const others = createSecrets('another-secret-0123456789-0123456', secureRandom)
  await assert.rejects(open(sealed, others), (error: Error) => {
    assert.match(
      error.message,
      new RegExp(`sealed with another secret \\(key id ${secrets.keyId}, here ${others.keyId}\\)`),
    )
    return true
  })
  const rotated = createSecrets('another-secret-0123456789-0123456', secureRandom, SECRET)
  assert.ok((await open(sealed, rotated)).equals(plain))
})

test('a dump of pg_dump, another file and another version are told apart', async () => {
  await assert.rejects(open(Buffer.from(`PGDMP${'x'.repeat(100)}`)), /dump of one database/)
  await assert.rejects(open(Buffer.from('hello')), /not a backup/)
  await assert.rejects(open(Buffer.alloc(0)), /not a backup/)
  const newer = Buffer.from(sealed)
  newer.writeUInt8(2, 8)
  await assert.rejects(open(newer), /format 2/)
})
