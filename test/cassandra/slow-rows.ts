import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Frames of version 4 of the native protocol (section 2): version, flags, stream (2), operation, length (4), then the body. */
const HEAD = 9
const RESULT = 0x08
/** The kind of a result, at the beginning of its body (section 4.2.5). */
const ROWS = 2

/** A proxy to a node that answers at once, except that rows arrive `delay` milliseconds late once `slowDown` was called. */
export async function startSlowRows(nodeUrl: string, delay: number) {
  const target = new URL(nodeUrl)
  const open = new Set<Socket>()
  let isSlow = false
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname)
    for (const socket of [near, far]) {
      open.add(socket)
      socket.on('error', () => {}).on('close', () => [near, far].forEach((each) => void each.destroy()))
    }
    near.pipe(far)
    let rest: Buffer = Buffer.alloc(0)
    far.on('data', (bytes: Buffer) => {
      rest = Buffer.concat([rest, bytes])
      for (let frame = firstFrame(rest); frame !== undefined; frame = firstFrame(rest)) {
        rest = rest.subarray(frame.length)
        const sent = frame
        if (isSlow && hasRows(sent)) setTimeout(() => near.write(sent), delay)
        else near.write(sent)
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // the address of a TCP server
  return {
    url: Object.assign(new URL(nodeUrl), { hostname: '127.0.0.1', port: String(port) }).href,
    slowDown() {
      isSlow = true
    },
    async close() {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

function firstFrame(bytes: Buffer): Buffer | undefined {
  if (bytes.length < HEAD) return undefined
  const length = HEAD + bytes.readUInt32BE(5)
  return bytes.length < length ? undefined : bytes.subarray(0, length)
}

const hasRows = (frame: Buffer): boolean => frame[4] === RESULT && frame.readUInt32BE(HEAD) === ROWS
