/** https://www.postgresql.org/docs/18/protocol-message-formats.html, as far as the proxy looks into it. */

/** The application_name of a startup message; empty where there is none. */
export function nameIn(startup: Buffer): string {
  const [, name = ''] = /\0application_name\0([^\0]*)/.exec(startup.toString()) ?? []
  return name
}

/** Told all that a server says, in parts of any size: how many statements each part has finished (ReadyForQuery). */
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
