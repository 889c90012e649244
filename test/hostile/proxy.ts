import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { answersIn, nameIn } from './messages.ts'

/** A way to a database that can be cut, lose connections without a word, be slow, or go silent, and come back. */
export type DatabaseProxy = {
  /** The database's URL, by this way. */
  readonly url: string
  /** Ends every connection. */
  drop(): void
  /** Breaks every connection off with a reset. */
  reset(): void
  /**
   * The connections that are there (those of this name) say nothing any more, and never end; new ones are as ever. A router that has
   * forgotten them does that.
   */
  forget(name?: string): void
  /** And refuses new ones. */
  cut(): Promise<void>
  /** Lets nothing through any more, in neither direction, and closes nothing. */
  freeze(): void
  /** Bytes are under way for as many milliseconds from here on. */
  slow(delay: number): void
  /** As if nothing had been; what was frozen goes on. What was forgotten stays so. */
  mend(): Promise<void>
  close(): Promise<void>
}

export type Passage = {
  /** Its `application_name`, as the client gave it. */
  readonly name: string
  /** The client is told what the server has said so far, and then that the connection has ended. */
  end(): void
}

type Options = {
  /** The caller's side stays open when the database's has closed. */
  readonly lingers?: boolean
  /** Milliseconds that bytes are under way. */
  readonly delay?: number
  /** The server has finished a statement, and the client is about to hear of it. */
  readonly onAnswer?: (passage: Passage) => void
}

type Pair = {
  readonly near: Socket
  readonly far: Socket
  name: string
  isForgotten: boolean
  isEnded: boolean
}

export async function proxyTo(databaseUrl: string, options: Options = {}): Promise<DatabaseProxy> {
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
    // An object for every server that listens on a port.
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

/** Tells each ReadyForQuery, after what came before it has been passed on. */
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
