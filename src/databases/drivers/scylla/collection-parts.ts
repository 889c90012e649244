import { fixedSize, type Vector } from '#databases/drivers/scylla/types.ts'

/** Splits composite values into parts. Native protocol, version 4, section 6. */

/** Parts of a list or a set; with two `perEntry`, alternating keys and values of a map. */
export function listParts(bytes: Buffer, perEntry = 1): (Buffer | null)[] {
  const parts: (Buffer | null)[] = []
  let at = 4
  for (let left = bytes.readInt32BE() * perEntry; left > 0; left--) {
    parts.push(sizedAt(bytes, at))
    at = endOf(bytes, at)
  }
  return parts
}

/** Fields of a tuple or a record, to the end of the value, since it may have fewer fields than its type. */
export function fieldParts(bytes: Buffer): (Buffer | null)[] {
  const parts: (Buffer | null)[] = []
  for (let at = 0; at < bytes.length; at = endOf(bytes, at)) parts.push(sizedAt(bytes, at))
  return parts
}

function sizedAt(bytes: Buffer, at: number): Buffer | null {
  return bytes.readInt32BE(at) < 0 ? null : bytes.subarray(at + 4, endOf(bytes, at))
}

const endOf = (bytes: Buffer, at: number): number => at + 4 + Math.max(0, bytes.readInt32BE(at))

export function vectorParts(bytes: Buffer, { element, dimensions }: Vector): Buffer[] {
  const size = fixedSize(element)
  if (size !== undefined)
    return Array.from({ length: dimensions }, (_, index) => bytes.subarray(index * size, (index + 1) * size))
  const parts: Buffer[] = []
  for (let at = 0; parts.length < dimensions; ) {
    const more = Math.clz32(~((bytes[at] ?? 0) << 24))
    const length = bytes.readUIntBE(at, more + 1) % 2 ** (7 * (more + 1))
    at += more + 1
    parts.push(bytes.subarray(at, at + length))
    at += length
  }
  return parts
}
