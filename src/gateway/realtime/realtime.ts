import type { FastifyReply, FastifyRequest } from 'fastify'
import { rememberClient } from '#databases/clients/realtime-store.ts'
import { requireAbility } from '#databases/drivers/abilities.ts'
import { edge } from '#kernel/http/failures.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { actorOf, type GatewayCaller, gatewayCaller } from '../caller/caller.ts'
import type { Renewal } from '../caller/renewal.ts'
import { fail } from '../errors.ts'
import { expectReadable, type LiveTable, openTable } from './live-table.ts'
import { createPages } from './pages.ts'
import { createPlaces, once } from './places.ts'
import { createPollers } from './poller.ts'
import { createReader, type Reader } from './reader.ts'
import { createShownKeys } from './shown-keys.ts'
import { type Stream, startStream } from './stream.ts'
import type { AskedStream, Opened } from './stream-parts.ts'

/** The streams of live rows of this process (gateway.md 20). */
export type Realtime = {
  /** Begins a stream for the request. Throws the failure of a caller who may have none. */
  open(request: FastifyRequest, reply: FastifyReply, asked: AskedStream, resumed: Resumed): Promise<Stream>
  /** Throws what `open` would throw for the tables. */
  expect(request: FastifyRequest, asked: AskedStream): Promise<void>
  /** Ends all streams: the service stops. */
  close(): void
}

type Resumed = { readonly lastId: string | undefined; readonly proof: string | undefined }

/** Events of operations that may have written rows of a live table. */
const WRITES: ReadonlySet<string> = new Set([
  'gateway_insert', 'gateway_update', 'gateway_delete', 'gateway_query', 'gateway_rpc', 'pipeline_completed',
]) // biome-ignore format: one line reads better

export function createRealtime(kernel: Kernel, renewal: Renewal): Realtime {
  const places = createPlaces(kernel.config)
  const readers = createReaders(kernel)
  const streams = new Set<Stream>()
  const pages = createPages(kernel.config)
  let isClosing = false
  let changes = 0
  const changed = () => void changes++
  kernel.coherence.subscribe({ apply: changed, clear: changed })
  kernel.events.subscribe((name, data) => {
    if (WRITES.has(name) && 'client' in data) readers.wake(data.client)
  })
  kernel.metrics.gauge('gatehouse_live_streams', 'Streams of live rows', [], () => [
    { labels: {}, value: places.taken() },
  ])
  kernel.metrics.gauge(
    'gatehouse_live_rows_lag_seconds',
    'Age of the last change that was read',
    ['client'],
    () => readers.lags(),
  )

  return {
    async open(request, reply, asked, resumed) {
      if (isClosing) throw edge('service_unavailable')
      const caller = gatewayCaller(request)
      const isStranger = caller.grant.kind === 'none'
      const key = isStranger ? undefined : actorOf(caller.grant)
      const route = isStranger ? asked.route : undefined
      const used = readers.use(caller)
      let leave: (() => void) | undefined
      const free = once(() => {
        leave?.()
        used.release()
      })
      try {
        leave = places.take({ key, route, address: request.clientAddress })
        const opened = await openAll(kernel, caller, asked, used.reader)
        if (isClosing) throw edge('service_unavailable')
        const retain = () => readers.use(caller).release
        const parts = {
          kernel,
          reader: used.reader,
          renewal,
          request,
          reply,
          asked,
          pages,
          retain,
          ...resumed,
        }
        let stream: Stream | undefined
        const closed = () => {
          if (stream !== undefined) streams.delete(stream)
          free()
        }
        stream = startStream({ ...parts, changes: () => changes, closed }, opened)
        if (!reply.raw.destroyed) streams.add(stream)
        return stream
      } catch (error) {
        free()
        throw error
      }
    },
    async expect(request, asked) {
      const caller = gatewayCaller(request)
      const used = readers.use(caller)
      try {
        await openAll(kernel, caller, asked, used.reader)
      } finally {
        used.release()
      }
    },
    close() {
      isClosing = true
      pages.closeAll()
      for (const stream of streams) stream.end('shutting_down')
    },
  }
}

/** Once more where the structure has changed meanwhile, since the stream would begin again at once, and with the first position of the reader. */
async function openAll(
  kernel: Kernel,
  caller: GatewayCaller,
  asked: AskedStream,
  reader: Reader,
): Promise<Opened> {
  for (let attempt = 1; ; attempt++) {
    const version = reader.version()
    const tables = await openTables(kernel, caller, asked, reader)
    const isLast = () => reader.version() === version || attempt === ATTEMPTS
    if (!isLast()) continue
    // Failures are answers as long as no event has been sent.
    await Promise.all(tables.map((table) => expectReadable(caller, table)))
    if (isLast()) return { tables, version }
  }
}

const ATTEMPTS = 3

async function openTables(
  kernel: Kernel,
  caller: GatewayCaller,
  { tables }: AskedStream,
  reader: Reader,
): Promise<readonly LiveTable[]> {
  const live = await Promise.all(tables.map((table) => openTable(kernel, caller, table, reader)))
  const names = new Set(live.map(({ name }) => name))
  // Events name the table alone.
  if (names.size < live.length)
    throw fail('not_live', { message: 'A stream has each table once', details: { field: 'tables' } })
  await reader.begin()
  return live
}

type Readers = {
  /** The reader of the caller's client, which reads until all have released it. */
  use(caller: GatewayCaller): { readonly reader: Reader; readonly release: () => void }
  /** Those of this client have something to read. */
  wake(client: string): void
  lags(): { labels: { client: string }; value: number }[]
}

function createReaders(kernel: Kernel): Readers {
  const pollers = createPollers(kernel)
  const keys = createShownKeys(kernel)
  const readers = new Map<GatewayCaller['client'], { readonly reader: Reader; users: number }>()
  return {
    use({ client, backend }) {
      const found = readers.get(client)
      const feed = requireAbility(backend, 'changes')
      const join = async (ring: () => void) => {
        // The control database may be another one, or an older one, than when the table became live.
        await rememberClient(kernel, client.name)
        return pollers.join(await backend.identity(), ring)
      }
      const entry = found ?? { reader: createReader(kernel, feed, join, keys), users: 0 }
      readers.set(client, entry)
      entry.users++
      return {
        reader: entry.reader,
        release: once(() => {
          if (--entry.users > 0) return
          readers.delete(client)
          entry.reader.close()
        }),
      }
    },
    wake(name) {
      for (const [client, { reader }] of readers) if (client.name === name) reader.wake()
    },
    lags: () =>
      [...readers].map(([client, { reader }]) => ({
        labels: { client: client.name },
        value: reader.lagSeconds(),
      })),
  }
}
