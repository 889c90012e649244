import { isIP } from 'node:net'

/** Bytes of an address, with or without an IPv4 address at its end (`64:ff9b::192.0.2.1`, RFC 4291 section 2.2). No zones. */
export function inetOf(text: string): Buffer | undefined {
  const version = text.includes('%') ? 0 : isIP(text)
  if (version === 4) return Buffer.from(text.split('.').map(Number))
  return version === 6 ? longOf(text) : undefined
}

function longOf(text: string): Buffer {
  const [head = [], tail = []] = text.split('::').map(groupsOf)
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => 0)
  const bytes = Buffer.alloc(16)
  for (const [index, group] of [...head, ...zeros, ...tail].entries()) bytes.writeUInt16BE(group, index * 2)
  return bytes
}

function groupsOf(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)]
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number)
    return [a * 256 + b, c * 256 + d]
  })
}

/** RFC 5952, except that an IPv4 address at the end is written in hex. */
export function inetText(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.')
  const groups = bytes.toString('hex').match(/.{4}/g) ?? []
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}
