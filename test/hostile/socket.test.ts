import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'
import { breakOff, exchange, requestBytes } from './raw-http.ts'

const t = await testService()
const port = Number(new URL(t.url).port)

type Header = readonly [name: string, value: string]
const post = (headers: readonly Header[], ...rest: (Buffer | string)[]) => [
  ...requestBytes({
    method: 'POST',
    path: '/api/auth/sign-in/email',
    headers: [['content-type', 'application/json'], ...headers],
  }),
  ...rest,
]
const get = (path: string, headers: readonly Header[] = []) => requestBytes({ method: 'GET', path, headers })
const typed = (type: string, path = '/api/auth/sign-in/email') =>
  requestBytes({ method: 'POST', path, headers: [['content-type', type]], body: Buffer.from('{}') })
const chunked: Header = ['transfer-encoding', 'chunked']

const CASES: Readonly<Record<string, readonly [status: number, bytes: readonly (Buffer | string)[]]>> = {
  'one header over 16 KiB': [431, get('/ping', [['x-user-id', 'a'.repeat(17_000)]])],
  'headers over 16 KiB together': [
    431,
    get(
      '/ping',
      Array.from({ length: 2_500 }, () => ['a', 'b'] as const),
    ),
  ],
  'a URL over 16 KiB': [431, get(`/${'a'.repeat(17_000)}`)],
  'bytes that are not HTTP': [400, ['hello there, is anybody in\r\n\r\n']],
  'the first bytes of TLS': [400, [Buffer.from('16030100a5010000a10303', 'hex')]],
  'the preface of HTTP/2': [400, ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n']],
  'no Host': [400, ['GET /ping HTTP/1.1\r\nconnection: close\r\n\r\n']],
  'a CONNECT, which is for proxies': [
    405,
    ['CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n'],
  ],
  'an unknown method': [400, ['FROBNICATE /ping HTTP/1.1\r\nhost: x\r\n\r\n']],
  'a method that is not allowed here': [
    405,
    requestBytes({ method: 'PROPFIND', path: '/ping', headers: [] }),
  ],
  'a NUL in the URL': [400, get('/pi\0ng')],
  'a NUL in a header': [400, get('/ping', [['x-user-id', 'a\0b']])],
  'a header without a name': [400, get('/ping', [['', 'value']])],
  'a bare line feed between headers': [400, ['GET /ping HTTP/1.1\r\nhost: x\r\na: b\nc d\r\n\r\n']],
  'a Content-Length above the maximum integer': [
    400,
    post([['content-length', '99999999999999999999999999']]),
  ],
  'a Content-Length of ten gigabytes': [413, post([['content-length', '9999999999']])],
  'a negative Content-Length': [400, post([['content-length', '-1']])],
  'a Content-Length that is not a number': [400, post([['content-length', '0x10']])],
  'two Content-Lengths': [
    400,
    post(
      [
        ['content-length', '2'],
        ['content-length', '3'],
      ],
      '{}',
    ),
  ],
  'Content-Length and Transfer-Encoding': [400, post([['content-length', '2'], chunked], '0\r\n\r\n')],
  'an unknown Transfer-Encoding': [400, post([['transfer-encoding', 'gzip, identity']], '{}')],
  'two Authorizations': [
    400,
    get('/api/auth/get-session', [
      ['authorization', 'Bearer a'],
      ['Authorization', 'Bearer b'],
    ]),
  ],
  'the same Authorization twice': [
    401,
    get('/api/auth/get-session', [
      ['authorization', 'Bearer a'],
      ['Authorization', 'Bearer a'],
    ]),
  ],
  'two Content-Types': [
    400,
    post(
      [
        ['content-type', 'text/plain'],
        ['content-length', '2'],
      ],
      '{}',
    ),
  ],
  'two Hosts': [400, get('/ping', [['host', 'elsewhere']])],
  'a compressed body': [
    415,
    post(
      [
        ['content-encoding', 'gzip'],
        ['content-length', '2'],
      ],
      '{}',
    ),
  ],
  'a body in UTF-16': [415, typed('application/json; Charset="UTF-16"')],
  'a form in Latin-1': [
    415,
    typed('application/x-www-form-urlencoded; charset=iso-8859-1', '/api/auth/confirm/verify-email'),
  ],
  'a UTF-8 body with another content type parameter': [400, typed('application/json; a=b;charset="utf-8"')],
  'a chunk size that is not a number': [400, post([chunked], 'zz\r\n{}\r\n0\r\n\r\n')],
  'a chunk size above the maximum integer': [400, post([chunked], 'ffffffffffffffffff\r\n{}\r\n0\r\n\r\n')],
  'chunks of two megabytes without end': [413, post([chunked], '200000\r\n', Buffer.alloc(2 * 2 ** 20, 'a'))],
  'an unknown Expect header': [200, get('/ping', [['expect', 'tea']])],
  'an unknown upgrade': [
    200,
    get('/ping', [
      ['upgrade', 'websocket'],
      ['connection', 'upgrade'],
    ]),
  ],
}

for (const [name, [status, bytes]] of Object.entries(CASES)) {
  test(`${name} gets ${status} with the usual headers and envelope`, async () => {
    const reply = await exchange(port, bytes)
    assert.ok(reply !== undefined, 'closed without a response')
    assert.equal(reply.status, status, reply.text)
    assert.match(reply.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/)
    assert.equal(reply.headers.get('x-content-type-options'), 'nosniff')
    if (status === 200) return
    const { code, message } = JSON.parse(reply.text)
    assert.deepEqual([typeof code, typeof message], ['string', 'string'])
  })
}

test("malformed HTTP gets the gateway's envelope with the request id of the header", async () => {
  const reply = await exchange(port, ['nonsense\r\n\r\n'])
  const { request_id, ...rest } = JSON.parse(reply?.text ?? '')
  assert.deepEqual(rest, {
    status: 'error',
    message: 'The request is not valid',
    error: 'The request is not valid',
    code: 'validation_error',
  })
  assert.equal(request_id, reply?.headers.get('x-request-id'))
})

test('headers above the limit that arrive in parts get 431 in the envelope of their surface', async () => {
  const [request = ''] = get('/api/auth/get-session', [['x-user-id', 'a'.repeat(20_000)]])
  const text = request.toString()
  const reply = await exchange(port, [text.slice(0, 10_000), text.slice(10_000)])
  assert.deepEqual([reply?.status, JSON.parse(reply?.text ?? '').code], [431, 'HEADERS_TOO_LARGE'])
})

test('an invalid percent-encoding gets the envelope of the surface in the path', async () => {
  const answers = await Promise.all(
    ['/api/auth/%ff', '/%ff', '/gateway/%zz?a=%ff'].map((path) => exchange(port, get(path))),
  )
  assert.deepEqual(
    answers.map((answer) => answer?.status),
    [404, 404, 404],
  )
  assert.deepEqual(
    answers.map((answer) => JSON.parse(answer?.text ?? '').code),
    ['NOT_FOUND', 'not_found', 'not_found'],
  )
})

test('a client that is still sending a far too large body gets 413', async () => {
  for (const megabytes of [2, 20]) {
    const answer = await t.anon.send('POST', '/api/auth/sign-in/email', {
      raw: 'x'.repeat(megabytes * 2 ** 20),
    })
    assert.deepEqual([answer.status, answer.body.code], [413, 'PAYLOAD_TOO_LARGE'])
  }
})

test('a megabyte of brackets takes no longer than a megabyte of other text', async () => {
  const quickest = async (raw: string): Promise<number> => {
    const times: number[] = []
    for (let round = 0; round < 5; round++) {
      const began = performance.now()
      const answer = await t.anon.send('POST', '/api/auth/sign-in/email', { raw })
      assert.equal(answer.body.code, 'INVALID_JSON')
      times.push(performance.now() - began)
    }
    return Math.min(...times)
  }
  const size = 2 ** 20 - 1
  const plain = await quickest('x'.repeat(size))
  const nested = await quickest('['.repeat(size))
  // Parsing it before the check would take thirty times as long.
  assert.ok(nested < 5 * plain, `${nested} ms against ${plain} ms`)
})

test('a client that disconnects during its body is not logged as an error', async () => {
  await Promise.all([
    breakOff(port, post([['content-length', '1000']], '{"email":')),
    breakOff(port, post([chunked], '5\r\n{"ema')),
  ])
  const { text } = await t.admin.get('/metrics')
  assert.doesNotMatch(text, /gatehouse_http_requests_total\{[^}]*status="5/)
})

test('the host of a mailed link comes from the configuration, not from the request', async () => {
  const { email } = await t.signUp('Ada')
  const body = Buffer.from(JSON.stringify({ email }))
  const lies = [
    'host: evil.example',
    'x-forwarded-host: evil.example',
    'x-forwarded-proto: https',
    'forwarded: host=evil.example',
  ]
  for (const path of ['/api/auth/forget-password', '/api/auth/send-verification-email']) {
    const lines = [
      ...lies,
      'content-type: application/json',
      `content-length: ${body.length}`,
      'connection: close',
    ]
    const reply = await exchange(port, [`POST ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`, body])
    assert.equal(reply?.status, 200)
  }
  const absolute = await exchange(port, [
    `POST http://evil.example/api/auth/forget-password HTTP/1.1\r\nhost: evil.example\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n`,
    body,
  ])
  assert.equal(absolute?.status, 200)
  const mails = await t.mails()
  assert.equal(mails.length, 3)
  for (const mail of mails) {
    assert.ok(!mail.includes('evil'))
    assert.ok(mail.replace(/=\r?\n/g, '').includes(t.service.kernel.publicUrl()))
  }
})

test('the service still works afterwards', async () => {
  const ada = await t.signUp('Ada')
  assert.equal((await ada.get('/api/auth/get-session')).status, 200)
  assert.deepEqual(
    t.log.filter((line) => /"level":"(warn|error|fatal)"/.test(line)),
    [],
  )
})
