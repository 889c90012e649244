import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { answersIn, nameIn } from './protocol-messages.ts'

/** A TCP proxy to a database that simulates failures: cut, silently dropped, slow, or frozen connections. */
export type DatabaseProxy = {
  /** URL of the database through the proxy. */
  readonly url: string
  /** Closes all connections. */
  drop(): void
  /** Resets all connections (RST). */
  reset(): void
  /**
   * Makes open connections (of this application name) silent without closing them, like a router that lost their state. New connections
   * work.
   */
  forget(name?: string): void
  /** Closes all connections and refuses new ones. */
  cut(): Promise<void>
  /** Stops all traffic in both directions without closing connections. */
  freeze(): void
  /** Delays all bytes by this many milliseconds from now on. */
  slow(delay: number): void
  /** Restores normal operation. Frozen connections continue; forgotten ones stay silent. */
  mend(): Promise<void>
  close(): Promise<void>
}

export type Passage = {
  /** `application_name` of the connection. */
  readonly name: string
  /** Passes on the server's output so far, then closes the connection. */
  end(): void
}

type Options = {
  /** Keeps the client's side open if the database closes its side. */
  readonly lingers?: boolean
  /** Delay of all bytes in milliseconds. */
  readonly delay?: number
  /** Called when the server has finished a statement, just before the client receives the result. */
  readonly onAnswer?: (passage: Passage) => void
}

type Pair = {
  readonly near: Socket
  readonly far: Socket
  name: string
  isForgotten: boolean
  isEnded: boolean
}

export async function startProxy(databaseUrl: string, options: Options = {}): Promise<DatabaseProxy> {
  const { lingers = false, onAnswer } = options
  const target = new URL(databaseUrl)
  const pairs = new Set<Pair>()
  let isFrozen = false
  let delay = options.delay ?? 0
  const later = (act: () => void) => void (delay === 0 ? act() : setTimeout(act, delay))

  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname)
    const pair: Pair = { near, far, name: '', isForgotten: false, isEnded: false }
    pairs.add(pair)
    const pass = (to: Socket) => (bytes: Buffer) =>
      later(() => pair.isForgotten || pair.isEnded || to.write(bytes))
    near.on('data', pass(far))
    far.on('data', pass(near))
    near.once('data', (bytes: Buffer) => {
      pair.name = nameIn(bytes)
    })
    if (onAnswer !== undefined) observe(pair, onAnswer)
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      if (isFrozen) socket.pause()
      socket.on('error', () => {})
      socket.on('close', () => {
        if (socket === near) pairs.delete(pair)
        if (socket === near || !(lingers || pair.isForgotten || pair.isEnded)) other.destroy()
      })
    }
  })
  const listen = async (port: number): Promise<number> => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    // A server that listens on a port has an object as its address.
    return (server.address() as AddressInfo).port
  }
  const port = await listen(0)
  const each = (act: (pair: Pair) => void) => {
    for (const pair of pairs) act(pair)
  }
  const drop = () => each(({ near }) => near.destroy())
  const cut = async (): Promise<void> => {
    const closed = new Promise((resolve) => server.close(resolve))
    drop()
    await closed
  }
  return {
    url: Object.assign(new URL(databaseUrl), { hostname: '127.0.0.1', port: String(port) }).href,
    drop,
    reset: () => each(({ near }) => near.resetAndDestroy()),
    forget: (name) =>
      each((pair) => {
        if (name !== undefined && pair.name !== name) return
        pair.isForgotten = true
        pair.far.destroy()
      }),
    cut,
    freeze() {
      isFrozen = true
      each(({ near, far }) => {
        near.pause()
        far.pause()
      })
    },
    slow(milliseconds) {
      delay = milliseconds
    },
    async mend() {
      isFrozen = false
      delay = options.delay ?? 0
      each(({ near, far }) => {
        near.resume()
        far.resume()
      })
      if (!server.listening) await listen(port)
    },
    close: () => (server.listening ? cut() : Promise.resolve()),
  }
}

/** Calls `onAnswer` for each ReadyForQuery, after the preceding bytes were passed on. */
function observe(pair: Pair, onAnswer: (passage: Passage) => void): void {
  const { near, far } = pair
  const passage = {
    get name() {
      return pair.name
    },
    end() {
      pair.isEnded = true
      near.end()
      far.destroy()
    },
  }
  const count = answersIn()
  far.on('data', (bytes: Buffer) => {
    for (let answers = count(bytes); answers > 0; answers--) onAnswer(passage)
  })
}
