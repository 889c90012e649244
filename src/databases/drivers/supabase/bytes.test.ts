import assert from 'node:assert/strict'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { test } from 'node:test'
import type { Failure } from '#kernel/errors.ts'
import { createCalls } from '#test/drivers/calls.ts'
import { BACKEND_KEY, DOCUMENT, openOn, silent, urlOf } from '#test/postgrest/backend.ts'

/** Backends with hand-written bytes. */

test('after a contradictory answer it is unknown whether a write was done', async () => {
  for (const range of ['*/99999999999999999999', '*/7', '*/*', '0-0/1, 0-0/2', 'x'])
    for (const body of ['[{"id":1,"title":"x"}]', '[1]', '{"id":1}', '[{"id":1,"title":"x"}'])
      await assert.rejects(
        writeTo(`201 Created\r\ncontent-range: ${range}`, body),
        inDoubt,
        `${range} ${body}`,
      )
})

test('after extra bytes, or from a port without HTTP, it is unknown whether a write was done', async () => {
  const [row, ok] = ['[{"id":1,"title":"x"}]', '201 Created\r\ncontent-range: */1']
  assert.deepEqual((await writeTo(ok, row)).affected, 1)
  for (const surplus of ['x', '\r\n\r\n', 'HTTP/1.1 200 OK\r\n', '[]'])
    await writeTo(ok, row, surplus).then(
      // A complete answer precedes them.
      ({ affected }) => assert.equal(affected, 1),
      (error) => assert.ok(inDoubt(error), surplus),
    )
  for (const greeting of [
    'SSH-2.0-OpenSSH_9.6\r\n',
    '220 mail ready\r\n',
    '\0\0\0',
    'HTTP/1.1 abc\r\n\r\n',
    '\n',
  ])
    await assert.rejects(
      writeBehind((socket) => socket.end(greeting)),
      inDoubt,
      greeting,
    )
})

const inDoubt = (error: Failure): boolean => {
  silent(error)
  assert.equal(error.status, 502, `${error.cause}`)
  return /whether a write was done/.test(error.hint ?? '')
}

const writeTo = (head: string, body: string, surplus = '') =>
  writeBehind((socket) => socket.write(httpText(head, body) + surplus))

async function writeBehind(answer: (socket: Socket) => void) {
  const { url, server } = await listening(answer)
  try {
    return await createCalls(() => openOn(url)).insert('books', { title: 'x' })
  } finally {
    server.close()
  }
}

/** Serves a correct structure; the test writes the rest. */
async function listening(answer: (socket: Socket) => void): Promise<{ url: string; server: Server }> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      if (/^GET \S*\/ /.test(chunk.toString())) socket.write(httpText('200 OK', JSON.stringify(DOCUMENT)))
      else answer(socket)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: urlOf((server.address() as AddressInfo).port), server } // a TCP server's
}

const httpText = (head: string, body: string): string =>
  `HTTP/1.1 ${head}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`

test('a key that a backend repeats is masked in failures', async () => {
  const refusals = [
    `no such key ${BACKEND_KEY}`,
    `key=${encodeURIComponent(BACKEND_KEY)}&x`,
    `"${BACKEND_KEY}"`,
  ]
  for (const message of refusals)
    for (const code of ['P0001', 'PGRST202', '22P02', 'PGRST999']) {
      const body = JSON.stringify({ code, message, details: message, hint: message })
      await assert.rejects(writeTo('400 Bad Request', body), (error: Failure) => {
        silent(error)
        return true
      })
    }
})

test('a schema whose name does not fit a header is refused, and nothing is sent', async () => {
  // Nothing listens there.
  const driver = openOn(urlOf(1))
  for (const schema of [
    'a\nb',
    'a\r\nx-injected: 1',
    'schéma',
    '模式',
    ' public',
    'public ',
    '\u007f',
    'a\tb',
    '\u0001',
  ])
    await assert.rejects(
      createCalls(() => driver).fetch({ table_name: 'books', schema_name: schema }),
      { code: 'unsupported_by_driver', status: 400 },
      JSON.stringify(schema),
    )
})
