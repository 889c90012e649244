import assert from 'node:assert/strict'
import { mock, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { type ClientOptions, connect } from '#client/connection.ts'
import { type LiveState, openLive } from '#client/live/open-live.ts'

export type Answer = (signal: AbortSignal) => Response

type FollowedOptions = { readonly columns?: readonly string[]; readonly client?: Partial<ClientOptions> }

/** A service that answers each request by `answer`, on a clock that is turned by hand. */
export function followed(t: TestContext, answer: Answer, options: FollowedOptions = {}) {
  mock.timers.enable({ apis: ['setTimeout'] })
  mock.method(Math, 'random', () => 0.5)
  const asked: {
    readonly at: number
    readonly headers: Headers
    readonly columns: readonly string[] | undefined
  }[] = []
  const states: LiveState<unknown>[] = []
  let now = 0
  const connection = connect({
    url: 'http://service',
    ...options.client,
    fetch: async (_, init) => {
      const [table] = JSON.parse(String(init?.body)).tables
      asked.push({ at: now, headers: new Headers(init?.headers), columns: table.columns })
      return answer(init?.signal ?? assert.fail())
    },
  })
  const end = () => {
    close()
    mock.restoreAll()
    mock.timers.reset()
  }
  t.after(() => end())
  const close = openLive(
    connection,
    { table_name: 'order', columns: options.columns },
    (state) => void states.push(state),
  )
  const settle = async () => {
    for (let turns = 0; turns < 5; turns++) await turn()
  }
  return {
    asked,
    states,
    settle,
    statuses: () =>
      states.map(({ status, error }) => (error === undefined ? status : `${status} ${error.code}`)),
    waits: () => asked.slice(1).map(({ at }, index) => at - (asked[index]?.at ?? 0)),
    async pass(milliseconds: number) {
      await settle()
      for (const end = now + milliseconds; now < end; ) {
        now += 500
        mock.timers.tick(500)
        await settle()
      }
    },
    close,
  }
}

/** An open stream. */
export function streamOf(signal: AbortSignal) {
  let sink: ReadableStreamDefaultController<Uint8Array> | undefined
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      sink = controller
      signal.addEventListener('abort', () => controller.error(signal.reason))
    },
  })
  return {
    response: new Response(body),
    send: (text: string) => sink?.enqueue(new TextEncoder().encode(text)),
    end: () => sink?.close(),
  }
}

export const event = (name: string, data: object, id = ''): string =>
  `event: ${name}\ndata: ${JSON.stringify(data)}\n${id && `id: ${id}\n`}\n`
export const READY =
  event('snapshot', { table: 'order', rows: [{ id: 1 }] }) + event('ready', { position: 'a' }, 'a')
