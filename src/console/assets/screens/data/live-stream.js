import { ApiError, parse } from '../../api.js'
import { openStream } from '../../long-answers.js'

/** Milliseconds until a stream is opened again, which double with each failure to the second. */
const RETRY = 2_000
const MOST = 30_000
/** Milliseconds without a byte after which a connection counts as lost. The service writes every 15 seconds. */
const SILENCE = 40_000
/** Milliseconds for which a stream that has said so counts as late. The service repeats it every 15 seconds. */
const LATE = 20_000
/** Failures of 4xx that pass. */
const TRANSIENT = [408, 425, 429]

/**
 * @typedef {{ begun(): void, changed(): void, stale(why: string): void, tooMany(): void, ended(why: string, mayReturn: boolean): void }} Listener
 * `begun`: it is complete from now on, and may have missed changes before. `stale`: it is lost or late; it goes on by itself. `ended`: it does not.
 */

/**
 * Follows rows by one stream after the other, until the function that it returns is called.
 * @param {string} client
 * @param {object} body of `POST /realtime`
 * @param {Listener} listener
 */
export function followRows(client, body, listener) {
  const leaving = new AbortController()
  let lastId = ''
  let failures = 0
  let wake = () => {}
  const hurry = () => wake()
  addEventListener('online', hurry)

  async function run() {
    while (!leaving.signal.aborted) {
      const why = await attempt().catch(reasonOf)
      if (leaving.signal.aborted) return
      if (typeof why !== 'string') return why.end()
      listener.stale(why)
      const { promise, resolve } = /** @type {PromiseWithResolvers<void>} */ (Promise.withResolvers())
      wake = resolve
      const timer = setTimeout(resolve, Math.min(MOST, RETRY * 2 ** failures++) * (0.5 + Math.random() / 2))
      await promise
      clearTimeout(timer)
    }
  }

  /** Reads one stream to its end. @returns {Promise<string | { end: () => void }>} why it is over; with `end`, for good */
  async function attempt() {
    const connection = new AbortController()
    const leave = () => connection.abort()
    leaving.signal.addEventListener('abort', leave)
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let late
    const behind = () => {
      clearTimeout(late)
      late = setTimeout(listener.begun, LATE)
      listener.stale('late')
    }
    const heard = () => {
      clearTimeout(timer)
      timer = setTimeout(leave, SILENCE)
    }
    /** @type {string | { end: () => void }} */
    let why = 'the connection was lost'
    const resumed = lastId
    let isWhole = false
    try {
      heard()
      const stream = await openStream('/realtime', { client, body, lastId, signal: connection.signal })
      for await (const { name, data, id } of eventsIn(stream, heard)) {
        const told = data === '' ? {} : parse(data)
        if (name === 'ready') {
          ;[failures, isWhole] = [0, true]
          listener.begun()
        } else if (name === 'change' || name === 'leave') listener.changed()
        else if (name === 'behind') behind()
        else if (name === 'reset') {
          ;[lastId, isWhole] = ['', false]
          if (told.reason === 'too_many') why = { end: listener.tooMany }
          else listener.stale(String(told.reason))
        } else if (name === 'end') {
          const { reason } = told
          const end = () => listener.ended(String(reason), reason === 'session_ended')
          why = reason === 'shutting_down' ? 'the service restarts' : { end }
        }
        if (id !== '' && (isWhole || resumed !== '')) lastId = id
      }
    } finally {
      clearTimeout(timer)
      clearTimeout(late)
      connection.abort()
      leaving.signal.removeEventListener('abort', leave)
    }
    return why
  }

  /** @param {unknown} error @returns {string | { end: () => void }} */
  function reasonOf(error) {
    if (!(error instanceof ApiError) || error.status < 400 || error.status >= 500)
      return 'the connection was lost'
    if (TRANSIENT.includes(error.status)) return error.message
    return { end: () => listener.ended(error.message, false) }
  }

  void run()
  return () => {
    leaving.abort()
    wake()
    removeEventListener('online', hurry)
  }
}

/**
 * Server-sent events (HTML, section 9.2.6), which may be split anywhere.
 * @param {ReadableStream<Uint8Array>} stream
 * @param {() => void} heard is called for each piece
 * @returns {AsyncGenerator<{ name: string, data: string, id: string }>}
 */
async function* eventsIn(stream, heard) {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    heard()
    const blocks = (rest + decoder.decode(read.value, { stream: true })).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) yield eventIn(block)
  }
}

/** @param {string} block */
function eventIn(block) {
  const lines = block.split('\n').map((line) => /^(\w*): ?(.*)$/s.exec(line) ?? [])
  const valuesOf = (/** @type {string} */ field) =>
    lines.flatMap(([, name, value = '']) => (name === field ? [value] : []))
  return {
    name: valuesOf('event')[0] ?? '',
    data: valuesOf('data').join('\n'),
    id: valuesOf('id').at(-1) ?? '',
  }
}
