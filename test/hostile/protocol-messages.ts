/** The parts of https://www.postgresql.org/docs/18/protocol-message-formats.html that the proxy needs. */

/** The application_name in a startup message, or an empty text. */
export function nameIn(startup: Buffer): string {
  const [, name = ''] = /\0application_name\0([^\0]*)/.exec(startup.toString()) ?? []
  return name
}

/** Returns a function that counts the statements finished (ReadyForQuery) in each chunk of a server's output. */
export function answersIn(): (bytes: Buffer) => number {
  let rest: Buffer = Buffer.alloc(0)
  return (bytes) => {
    rest = Buffer.concat([rest, bytes])
    let answers = 0
    while (rest.length >= 5) {
      const end = 1 + rest.readUInt32BE(1)
      if (rest.length < end) break
      if (rest[0] === READY) answers++
      rest = rest.subarray(end)
    }
    return answers
  }
}

const READY = 'Z'.charCodeAt(0)
