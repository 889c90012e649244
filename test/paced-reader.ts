import assert from 'node:assert/strict'
import { connect } from 'node:net'

/** A reader of an answer who takes 20 KiB a second, from a connection of its own. */
export type PacedReader = {
  readonly requestId: string
  /** Whether it has had all of the answer or was cut off. */
  readonly end: Promise<'whole' | 'cut'>
  readonly isOpen: () => boolean
  /** Bytes so far. */
  readonly taken: () => number
  /** Takes the rest as fast as it comes. */
  hurry(): void
}

type Asked = {
  readonly method?: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: object
}

const PIECE = 4_096
const PAUSE = 200

/** Sends a request and reads the first piece of its answer, which must be a 200. */
export async function readPaced(
  url: string,
  { method = 'POST', headers, body }: Asked,
): Promise<PacedReader> {
  const { hostname, port, pathname, search } = new URL(url)
  const text = body === undefined ? '' : JSON.stringify(body)
  const all = {
    host: 'gateway',
    ...headers,
    ...(body !== undefined && {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(text)),
    }),
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  const { promise: end, resolve } = Promise.withResolvers<'whole' | 'cut'>()
  const begun = Promise.withResolvers<string>()
  let [taken, pause, last, length] = [0, PAUSE, '', Number.POSITIVE_INFINITY]
  let isOpen = true
  const close = (how: 'whole' | 'cut') => {
    isOpen = false
    resolve(how)
    socket.destroy()
  }
  const socket = connect({
    host: hostname,
    port: Number(port),
    onread: {
      buffer: Buffer.alloc(PIECE),
      callback(size, buffer) {
        const chunk = Buffer.from(buffer.subarray(0, size)).toString('latin1')
        if (taken === 0) {
          begun.resolve(chunk)
          const [, stated] = /^content-length: (\d+)/im.exec(chunk) ?? []
          if (stated !== undefined) length = chunk.indexOf('\r\n\r\n') + 4 + Number(stated)
        }
        taken += size
        last = (last + chunk).slice(-5)
        if (last === '0\r\n\r\n' || taken >= length) close('whole')
        else if (pause > 0) {
          socket.pause()
          setTimeout(() => socket.resume(), pause)
        }
        return true
      },
    },
  })
  socket.on('error', () => close('cut')).on('close', () => close('cut'))
  socket.write(`${method} ${pathname}${search} HTTP/1.1\r\n${lines.join('')}\r\n${text}`)
  const head = await Promise.race([begun.promise, end.then(() => '')])
  assert.match(head, /^HTTP\/1\.1 200 /, head)
  const [, requestId = ''] = /^x-request-id: (.*)\r$/im.exec(head) ?? []
  return {
    requestId,
    end,
    isOpen: () => isOpen,
    taken: () => taken,
    hurry() {
      pause = 0
      socket.resume()
    },
  }
}
