import assert from 'node:assert/strict'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Driver } from '#databases/drivers/driver.ts'
import type { Failure } from '#kernel/errors.ts'
import { createCalls } from '#test/drivers/calls.ts'
import { DOCUMENT as document, BACKEND_KEY as key, openOn, silent, urlOf } from '#test/postgrest/backend.ts'

/** A backend that can be down, slow, or something other than PostgREST. */
let server: Server
let url: string
let listener: RequestListener
const sockets = new Set<Socket>()

const json = { 'content-type': 'application/json' }
/** First a correct structure, then the faulty answer. */
const behind =
  (listen: RequestListener): RequestListener =>
  (request, response) => {
    if (request.url?.endsWith('/')) response.writeHead(200, json).end(JSON.stringify(document))
    else listen(request, response)
  }

const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
before(async () => {
  server = createServer((request, response) => listener(request, response))
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await listen(0)
  url = urlOf((server.address() as AddressInfo).port)
})
after(() => {
  server.closeAllConnections()
  server.close()
})

const open = (more: object = {}): Driver => openOn(url, more)
const read = (driver: Driver) => createCalls(() => driver).fetch({ table: 'books' })
const write = (driver: Driver) => createCalls(() => driver).insert('books', { title: 'x' })

test('any answer that does not come from PostgREST is a failure of the backend', async () => {
  const told = (status: number, body: string, headers: Record<string, string> = json) =>
    behind((_, response) => response.writeHead(status, headers).end(body))
  const refusal = (code: string, message = 'm') =>
    JSON.stringify({ code, message, details: null, hint: null })
  const answers: [RequestListener, [number, string]][] = [
    [told(200, '<html>welcome</html>', { 'content-type': 'text/html' }), [502, 'database_error']],
    [told(200, 'not json'), [502, 'database_error']],
    [told(200, '[{"id":1'), [502, 'database_error']],
    [told(200, '{"id":1}'), [502, 'database_error']],
    [told(200, ''), [502, 'database_error']],
    [told(200, '[1,2]'), [502, 'database_error']],
    [told(200, '[{"id":1},null]'), [502, 'database_error']],
    [told(200, '[[]]'), [502, 'database_error']],
    [told(200, 'null'), [502, 'database_error']],
    [
      told(200, '[{"id":1}]', { ...json, 'content-range': '0-0/99999999999999999999' }),
      [502, 'database_error'],
    ],
    [told(200, '[{"id":1}]', { ...json, 'content-range': 'rows' }), [502, 'database_error']],
    [told(302, '', { location: 'http://127.0.0.1:1/' }), [502, 'database_error']],
    [told(500, 'oops'), [502, 'database_error']],
    [told(502, '<html>bad gateway</html>', { 'content-type': 'text/html' }), [502, 'database_error']],
    [told(503, ''), [503, 'client_unavailable']],
    [told(504, ''), [504, 'statement_timeout']],
    [told(429, '{}'), [503, 'client_busy']],
    [told(401, JSON.stringify({ message: 'Invalid API key' })), [502, 'client_refused']],
    [told(403, '<html>forbidden</html>', { 'content-type': 'text/html' }), [502, 'client_refused']],
    [told(404, '{"hint":"path"}'), [502, 'client_refused']],
    [told(414, ''), [400, 'too_complex']],
    [told(401, refusal('PGRST301')), [502, 'client_refused']],
    [told(503, refusal('PGRST002')), [503, 'client_unavailable']],
    [told(504, refusal('PGRST003')), [503, 'client_busy']],
    [told(400, refusal('PGRST999')), [502, 'database_error']],
    [told(403, refusal('42501', 'permission denied for table books')), [403, 'permission_denied']],
    [told(401, refusal('42501', 'permission denied for table books')), [403, 'permission_denied']],
    [told(500, refusal('57014', 'canceling statement due to statement timeout')), [504, 'statement_timeout']],
    [told(500, refusal('53300', 'too many connections')), [503, 'client_busy']],
    [told(400, refusal('P0001', 'a rule says no')), [400, 'rejected_by_database']],
    [told(400, refusal('SH001', 'a rule of its own says no')), [400, 'rejected_by_database']],
    [told(400, refusal('constructor')), [502, 'database_error']],
    [told(400, '{"code":{"a":1}}'), [502, 'database_error']],
    [told(500, 'x'.repeat(200_000)), [502, 'database_error']],
  ]
  const driver = open()
  for (const [answer, expected] of answers) {
    listener = answer
    await assert.rejects(read(driver), (error: Failure) => {
      silent(error)
      assert.deepEqual([error.status, error.code], expected, `${error.cause}`)
      return true
    })
  }
  listener = told(200, '[ {"id": 1, "title": "x" } ]', { 'content-type': 'application/json; charset=utf-8' })
  assert.deepEqual((await read(driver)).rows, [{ id: 1, title: 'x' }])
})

test('an empty document is refused, and a false one does no harm', async () => {
  for (const text of ['[]', 'null', '{}', '"x"', '<html>']) {
    listener = (_, response) => response.writeHead(200, json).end(text)
    await assert.rejects(read(open()), (error: Failure) => {
      silent(error)
      return ['client_refused', 'database_error'].includes(error.code)
    })
  }
  listener = (request, response) =>
    response.writeHead(200, json).end(
      request.url?.endsWith('/')
        ? JSON.stringify({
            definitions: { books: { properties: { id: null, title: 5 }, required: 'x' } },
            paths: { '/books': [] },
          })
        : '[]',
    )
  assert.deepEqual((await read(open())).rows, [])
})

test('an answer that is too large is not read to its end, and after a write the failure says that it was done', async () => {
  const big = `[{"title":"${'x'.repeat(40 * 1024 * 1024)}"}]`
  listener = behind((_, response) => response.writeHead(201, { ...json, 'content-range': '*/1' }).end(big))
  const driver = open({ statement_timeout: 20_000 })
  await assert.rejects(read(driver), { code: 'result_too_large', status: 413 })
  await assert.rejects(write(driver), { code: 'result_too_large', hint: /were written/ })
})

test('a timeout or a lost connection says what is in doubt', async () => {
  const brief = { statement_timeout: 400 }
  listener = behind(() => {})
  await assert.rejects(write(open(brief)), (error: Failure) => {
    silent(error)
    assert.deepEqual([error.status, error.code], [504, 'statement_timeout'])
    return /not known/.test(error.hint ?? '')
  })
  listener = behind((_, response) => response.writeHead(200, json).write('[{"id":1},'))
  await assert.rejects(read(open(brief)), { code: 'statement_timeout' })
  listener = behind((request) => request.socket.destroy())
  await assert.rejects(write(open()), (error: Failure) => {
    silent(error)
    assert.deepEqual([error.status, error.code], [502, 'connection_lost'])
    return /not known/.test(error.hint ?? '')
  })
})

test('a read is not retried', async () => {
  let asked = 0
  listener = behind((request, response) => {
    asked++
    if (asked > 1) response.writeHead(200, json).end('[]')
    else if (request.method === 'GET') request.socket.destroy()
  })
  await assert.rejects(read(open()), { code: 'connection_lost' })
  assert.equal(asked, 1)
})

test('while a backend is down callers fail at once, and it is used again when it is back', async () => {
  listener = behind((_, response) => response.writeHead(200, json).end('[]'))
  const driver = open()
  await read(driver)
  const { port } = server.address() as AddressInfo
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  await assert.rejects(read(driver), (error: Failure) => {
    silent(error)
    return error.code === 'client_unavailable' || error.code === 'connection_lost'
  })
  await assert.rejects(read(driver), { code: 'client_unavailable', status: 503 })
  assert.equal(driver.stats().circuit, 'open')
  await listen(port)
  const before = sockets.size
  await assert.rejects(read(driver), (error: Failure) => Number(error.headers?.['retry-after']) >= 1)
  assert.equal(sockets.size, before, 'nothing is sent while the circuit is open')
  for (let round = 0; driver.stats().circuit === 'open' && round < 1_000; round++) await sleep(50)
  assert.deepEqual((await read(driver)).rows, [])
  assert.equal(driver.stats().circuit, 'closed')
})

test('requests in flight are limited, and callers who wait too long are refused', async () => {
  let now = 0
  let most = 0
  const held: (() => void)[] = []
  listener = behind((_, response) => {
    most = Math.max(most, ++now)
    held.push(() => {
      now--
      response.writeHead(200, json).end('[]')
    })
  })
  const driver = open({ max_connections: 3, connect_timeout: 1_000, statement_timeout: 10_000 })
  await driver.catalogue()
  const all = Promise.allSettled(Array.from({ length: 10 }, () => read(driver)))
  for (let round = 0; held.length < 3 && round < 100; round++) await sleep(20)
  assert.deepEqual([driver.stats().total, driver.stats().waiting], [3, 7])
  for (let round = 0; driver.stats().waiting > 0 && round < 250; round++) await sleep(20)
  for (const answer of held) answer()
  const outcomes = await all
  assert.equal(most, 3)
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 3)
  for (const outcome of outcomes)
    if (outcome.status === 'rejected') assert.equal(outcome.reason.code, 'client_busy')
  assert.deepEqual([driver.stats().total, driver.stats().waiting], [0, 0])
})

test('the key is sent only in its headers, and only JSON is accepted', async () => {
  const asked: { url: string | undefined; headers: Record<string, unknown> }[] = []
  listener = (request, response) => {
    asked.push({ url: request.url, headers: request.headers })
    response.writeHead(200, json).end(request.url?.endsWith('/') ? JSON.stringify(document) : '[]')
  }
  await read(open())
  assert.equal(asked.length, 2)
  for (const { url, headers } of asked) {
    assert.doesNotMatch(url ?? '', /sb_secret/)
    assert.deepEqual([headers.apikey, headers.authorization], [key, `Bearer ${key}`])
    assert.match(String(headers.accept), /^application\/(openapi\+)?json$/)
  }
})

test('a URL with a path is PostgREST itself, one without is a Supabase project', async () => {
  const asked: (string | undefined)[] = []
  listener = (request, response) => {
    asked.push(request.url)
    response.writeHead(200, json).end(JSON.stringify(document))
  }
  assert.equal(await open().probe(), '13.0.5')
  assert.equal(await open({ url: `${url}/api/` }).probe(), '13.0.5')
  assert.deepEqual(asked, ['/rest/v1/', '/rest/v1/', '/api/', '/api/'])
})
