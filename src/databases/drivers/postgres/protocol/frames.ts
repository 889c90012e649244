import type { ActiveQuery } from '#databases/drivers/postgres/protocol/active-query.ts'
import { fail } from '#databases/failures.ts'

/** Larger rows are refused: a row is buffered as a whole, and a relation can aggregate a table into one row. */
const MAX_MESSAGE = 67_108_864

const tooLarge = () =>
  fail('result_too_large', {
    message: 'A row is larger than 64 MB',
    hint: 'Ask for fewer columns, or read the relation by itself.',
  })

const CODES = { parsed: 0x31, bound: 0x32, closed: 0x33, row: 0x44, ready: 0x5a } as const

/** The connection, as needed here. */
type Receiver = {
  readonly active: ActiveQuery | undefined
  /** Called when the active query has been answered. */
  advance(): void
  pauseWhenFull(): void
  destroy(): void
}

/** Splits the stream into messages: rows go to the active query, the rest to `pass`. An unreadable stream ends the connection. */
export function createFrameReader(
  client: Receiver,
  join: Joiner,
  pass: (bytes: Buffer) => void,
): (chunk: Buffer) => void {
  const read = (chunk: Buffer) => {
    if (join.needed() > MAX_MESSAGE) return client.active?.refuse(tooLarge())
    const data = join.add(chunk)
    if (data === undefined) return
    let at = 0
    let passed = 0
    while (at + 5 <= data.length) {
      const end = at + 1 + data.readUInt32BE(at + 1)
      if (end > data.length) break
      const code = data[at]
      const query = client.active
      if (
        query !== undefined &&
        (code === CODES.row || code === CODES.parsed || code === CODES.bound || code === CODES.closed)
      ) {
        if (passed < at) pass(data.subarray(passed, at))
        passed = end
        if (code === CODES.row) query.row(data, at + 7, end, data.length - at)
        else if (code === CODES.parsed) query.parsed = true
      }
      at = end
      if (code === CODES.ready && query !== undefined) {
        pass(data.subarray(passed, at))
        passed = end
        query.settle()
        client.advance()
      }
    }
    if (passed < at) pass(data.subarray(passed, at))
    join.keep(data, at)
  }
  return (chunk) => {
    try {
      read(chunk)
      client.pauseWhenFull()
    } catch (error) {
      client.active?.refuse(fail('connection_lost', { cause: error }))
      client.destroy()
    }
  }
}

type Joiner = {
  /** Buffered bytes of an incomplete message. */
  buffered(): number
  /** Total bytes of the incomplete message. */
  needed(): number
  add(chunk: Buffer): Buffer | undefined
  keep(data: Buffer, from: number): void
}

/** Joins chunks once the message at their start is complete: a row of 100 MB is joined once, not 1,500 times. */
export function createJoiner(): Joiner {
  let parts: Buffer[] = []
  let buffered = 0
  let needed = 0
  return {
    buffered: () => buffered,
    needed: () => (buffered === 0 ? 0 : needed),
    add(chunk) {
      if (buffered === 0) return chunk
      parts.push(chunk)
      buffered += chunk.length
      if (buffered < needed) return undefined
      const joined = Buffer.concat(parts, buffered)
      parts = []
      buffered = 0
      return joined
    },
    keep(data, from) {
      buffered = data.length - from
      if (buffered === 0) return
      parts = [data.subarray(from)]
      needed = buffered < 5 ? 5 : 1 + data.readUInt32BE(from + 1)
    },
  }
}
