import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { startLoader } from './loader.ts'

const loader = startLoader()
after(loader.end)

test('a run counts answers of every kind of length, and failures apart', async (t) => {
  const seen = new Set<string>()
  const url = await serve(t, (target, body) => {
    seen.add(`${target} ${body}`)
    if (target === '/missing') return { status: 404, body: 'no' }
    return target === '/long'
      ? { status: 200, chunks: ['[', '1'.repeat(100_000), ']'] }
      : { status: 200, body }
  })
  const requests = [{ path: '/long' }, { method: 'POST', path: '/echo', body: 'ä' }, { path: '/missing' }]
  const result = await loader.perform({ load: { url, requests, connections: 4 }, seconds: 0.5 })
  assert.ok(result.done >= 4 && Math.abs(result.done / result.failed - 2) < 0.5, JSON.stringify(result))
  assert.deepEqual(Object.keys(result.failures), ['404'])
  assert.deepEqual([...seen].sort(), ['/echo ä', '/long ', '/missing '])
  assert.ok(result.processor > 0 && result.seconds < 2)
})

test('a mix counts answers and failures by kind of request', async (t) => {
  const url = await serve(t, (target) => ({ status: target === '/missing' ? 404 : 200, body: 'x' }))
  const requests = [
    { path: '/', kind: 'read' },
    { path: '/', kind: 'write' },
    { path: '/missing', kind: 'write' },
    { path: '/', kind: 'read' },
  ]
  const { kinds, failures } = await loader.perform({
    load: { url, requests, connections: 2, once: true },
    seconds: 20,
  })
  assert.deepEqual({ ...kinds }, { read: 2, write: 1 })
  assert.deepEqual({ ...failures }, { 'write: 404': 1 })
})

test('requests that are sent once end a run early', async (t) => {
  let count = 0
  const url = await serve(t, () => {
    count++
    return { status: 204, body: '' }
  })
  const requests = Array.from({ length: 7 }, () => ({ path: '/' }))
  const result = await loader.perform({ load: { url, requests, connections: 3, once: true }, seconds: 20 })
  assert.deepEqual([result.done, count], [7, 7])
})

test('latency at a constant rate counts from the intended time of sending', async (t) => {
  const url = await serve(t, () => ({ status: 200, body: 'x', delay: 100 }))
  // One connection answers ten a second, so that most of twenty wait for it.
  const load = { url, requests: [{ path: '/' }], connections: 1 }
  const { latency, lag, done } = await loader.perform({ load, seconds: 1, rate: 20 })
  assert.ok(done >= 9 && done <= 20, `${done}`)
  assert.ok((latency?.p50 ?? 0) > 200, JSON.stringify(latency))
  assert.ok((lag?.p50 ?? 1_000) < 50, JSON.stringify(lag))
})

test('lost connections are failures, and are opened again', async (t) => {
  let count = 0
  const url = await serve(t, () => ({ status: 200, body: 'x', isLost: ++count % 2 === 0 }))
  const load = { url, requests: [{ path: '/' }], connections: 1 }
  const { done, failed } = await loader.perform({ load, seconds: 0.3 })
  assert.ok(done > 3 && Math.abs(done - failed) <= 1, `${done} and ${failed}`)
})

type Answer = { status: number; body?: string; chunks?: readonly string[]; delay?: number; isLost?: boolean }

async function serve(
  t: { after(clean: () => void): void },
  answerTo: (target: string, body: string) => Answer,
): Promise<string> {
  const server: Server = createServer(async (request, response) => {
    const {
      status,
      body,
      chunks,
      delay = 0,
      isLost,
    } = answerTo(request.url ?? '', Buffer.concat(await Array.fromAsync(request)).toString())
    if (isLost) return void request.socket.destroy()
    await new Promise((resolve) => setTimeout(resolve, delay))
    response.writeHead(status, body === undefined ? {} : { 'content-length': Buffer.byteLength(body) })
    for (const chunk of chunks ?? []) response.write(chunk)
    response.end(body)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  t.after(() => void server.close())
  const { port } = server.address() as AddressInfo // a TCP server's
  return `http://127.0.0.1:${port}`
}
