import { failureOf, parse, request, unreachable, withQuestions } from './api.js'

/** @typedef {import('./api.js').Asked} Asked */

/**
 * The result of an endpoint that tells its progress in lines before it.
 * @template Progress
 * @param {string} path
 * @param {Asked & { onProgress: (progress: Progress) => void }} asked
 * @returns {Promise<any>}
 */
export const callLines = (path, asked) => withQuestions(asked, () => follow(path, asked))

/** @template Progress @param {string} path @param {Asked & { onProgress: (progress: Progress) => void }} asked */
async function follow(path, asked) {
  const response = await request(path, { ...asked, headers: { accept: 'application/x-ndjson' } })
  if (!response.ok || response.body === null)
    throw failureOf(response, await response.text().catch(unreachable))
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  for (let rest = ''; ; ) {
    const { value, done } = await reader.read().catch(unreachable)
    if (done) return unreachable(undefined)
    const lines = (rest + value).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const { progress, result, failure } = parse(line)
      if (failure !== undefined) throw failureOf(response, JSON.stringify(failure))
      if (result !== undefined) return result
      asked.onProgress(progress)
    }
  }
}

/**
 * The file that an endpoint sends.
 * @param {string} path
 * @param {Asked & { onProgress: (bytes: number) => void }} asked
 * @returns {Promise<Blob>}
 */
export const callFile = (path, asked) => withQuestions(asked, () => receive(path, asked))

/** A large file goes to the disk of the browser, not through the memory of this page. @param {string} path @param {Asked & { onProgress: (bytes: number) => void }} asked */
async function receive(path, asked) {
  const response = await request(path, asked)
  if (!response.ok || response.body === null)
    throw failureOf(response, await response.text().catch(unreachable))
  let received = 0
  /** @type {TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>} */
  const counting = new TransformStream({
    transform(part, out) {
      received += part.length
      asked.onProgress(received)
      out.enqueue(part)
    },
  })
  return new Response(response.body.pipeThrough(counting)).blob().catch(unreachable)
}

/**
 * Opens a stream of events, which goes on after that of an id.
 * @param {string} path
 * @param {{ client: string, body: unknown, lastId: string, signal: AbortSignal }} asked
 * @returns {Promise<ReadableStream<Uint8Array>>}
 */
export async function openStream(path, { lastId, ...asked }) {
  const headers = { accept: 'text/event-stream', ...(lastId !== '' && { 'last-event-id': lastId }) }
  const response = await request(path, { ...asked, method: 'POST', headers })
  if (response.ok && response.body !== null) return response.body
  throw failureOf(response, await response.text().catch(unreachable))
}
