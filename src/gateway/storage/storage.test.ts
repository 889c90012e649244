import assert from 'node:assert/strict'
import type { RequestListener, ServerResponse } from 'node:http'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Actor, actor, testService } from '#test/harness.ts'
import { startLoopbackServer } from '#test/loopback-server.ts'
import { whileArriving } from '#test/slow-body.ts'
import { listObjects } from './objects.ts'
import { createS3Calls } from './s3-call.ts'

const CREDENTIALS = { region: 'eu-test-1', access_key_id: 'AKIATEST', secret_key: 'a very secret key' }
const PATHS = ['', '/head', '/url', '/upload-url', '/delete'].map((path) => `/storage/objects${path}`)

let answer: RequestListener = (_request, response) => response.end()
let requests = 0
const server = await startLoopbackServer((request, response) => {
  requests++
  answer(request, response)
})
const t = await testService({
  config: { outbound: { allow_networks: ['127.0.0.1/32'], allow_http: true } },
})
const guarded = await testService()
const key = await t.key(['gateway.storage_proxy'])
const holder = actor(t.url, { apikey: key.apiKey })
const body = { ...CREDENTIALS, endpoint: server.url, bucket: 'reports', key: 'a.txt' }

const answersWith = (status: number, text: string, headers: Record<string, string> = {}): void => {
  answer = (_request, response) =>
    response.writeHead(status, { 'content-type': 'application/xml', ...headers }).end(text)
}

test('object storage requires a key with its right, or the admin key, before the body is read', async () => {
  const reader = await t.key(['gateway.read'])
  for (const path of PATHS) {
    const ask = async (headers: Record<string, string>) => {
      const { status, body: refusal } = await actor(t.url, headers).post(path, { broken: true })
      return [status, refusal.code]
    }
    assert.deepEqual(await ask({}), [401, 'api_key_required'], path)
    assert.deepEqual(await ask({ apikey: reader.apiKey }), [403, 'insufficient_rights'], path)
    assert.deepEqual(await ask({ apikey: key.apiKey }), [400, 'validation_error'], path)
    assert.deepEqual(await ask(t.admin.headers), [400, 'validation_error'], path)
  }
  assert.equal(requests, 0)
})

test('a name that no bucket has is refused with the rule in words', async () => {
  const { status, body: refusal } = await holder.post('/storage/objects', { ...body, bucket: 'Reports' })
  assert.deepEqual([status, refusal.message], [400, 'bucket has an invalid form'])
  assert.match(String(refusal.error), /3 to 63 lower-case letters/)
  assert.equal(requests, 0)
})

test('addresses that the outbound rules forbid are refused, and so are endpoints that are none', async () => {
  const { apiKey } = await guarded.key(['gateway.storage_proxy'])
  for (const endpoint of [
    'http://s3.example.com',
    'https://127.0.0.1',
    'https://[::1]:9000',
    'https://169.254.169.254/latest/meta-data',
    '10.0.0.1',
    'https://2130706433',
    'https://0x7f.1',
    'https://user:word@s3.example.com',
    'ftp://s3.example.com',
    'https://s3.example.com/?x=1',
    'https://s3.example.com/#x',
    'https://s3.example.com/a/../b',
    'https://',
    'two words',
    'file:///etc/passwd',
    // A name that resolves to a private address is refused at the connection.
    'https://localhost:9000',
    'https://s3.example',
  ]) {
    const isLookedUp = /localhost|s3\.example$/.test(endpoint)
    for (const path of isLookedUp ? PATHS.slice(0, 2) : PATHS) {
      const { status, body: refusal } = await actor(guarded.url, { apikey: apiKey }).post(path, {
        ...body,
        endpoint,
      })
      assert.deepEqual([status, refusal.code], [400, 'invalid_endpoint'], `${path} ${endpoint}`)
    }
  }
})

test('names that a URL or the SDK would take for something else are refused without a request', async () => {
  requests = 0
  for (const bucket of [
    'UPPER',
    'ab',
    'a..b',
    '1.2.3.4',
    'xn--a',
    'a/b',
    '..',
    'a--x-s3',
    'a-s3alias',
    'arn:aws:s3',
    'a_b',
  ])
    assert.equal((await holder.post('/storage/objects', { ...body, bucket })).status, 400, bucket)
  for (const name of ['..', '../other/secret', 'a/../../other/secret', 'a/./b', 'a/%2e%2e/b', 'a\\..\\b'])
    for (const path of PATHS.slice(1)) {
      const { status, body: refusal } = await holder.post(path, { ...body, key: name })
      assert.deepEqual([status, refusal.code], [400, 'invalid_object_key'], `${path} ${name}`)
    }
  for (const more of [
    { access_key_id: 'a\r\nb' },
    { session_token: 'a b' },
    { region: 'eu/../x' },
    { key: 'a'.repeat(1_025) },
    { key: '\ud800' },
    { secret_key: '\ud800' },
  ])
    assert.equal((await holder.post('/storage/objects/head', { ...body, ...more })).status, 400)
  for (const more of [{ prefix: '\ud800' }, { delimiter: '\udfff' }, { max_keys: 2 ** 31 }])
    assert.equal((await holder.post('/storage/objects', { ...body, ...more })).status, 400)
  assert.equal(requests, 0)
})

test('failures of the server have their own status, and its messages are not repeated', async () => {
  const error = (code: string) =>
    `<?xml version="1.0"?><Error><Code>${code}</Code><code>x</code><Message>${CREDENTIALS.secret_key}</Message></Error>`
  for (const [status, text, expected, code] of [
    [403, error('AccessDenied'), 403, 'storage_access_denied'],
    [403, error('InvalidAccessKeyId'), 403, 'storage_access_denied'],
    [403, error('SignatureDoesNotMatch'), 403, 'storage_access_denied'],
    [404, error('NoSuchBucket'), 404, 'bucket_not_found'],
    [400, error('InvalidArgument'), 502, 'storage_unavailable'],
    [500, error('InternalError'), 502, 'storage_unavailable'],
    [503, error('SlowDown'), 502, 'storage_unavailable'],
    [301, error('PermanentRedirect'), 502, 'storage_unavailable'],
    [200, 'no XML', 502, 'storage_unavailable'],
    [200, '<a>'.repeat(50_000), 502, 'storage_unavailable'],
    [500, '', 502, 'storage_unavailable'],
  ] as const) {
    answersWith(status, text)
    const { status: got, body: refusal, text: shown } = await holder.post('/storage/objects', body)
    assert.deepEqual([got, refusal.code], [expected, code], `${status} ${text.slice(0, 80)}`)
    assert.ok(!shown.includes(CREDENTIALS.secret_key))
  }
  answersWith(404, '{"message": "no such page"}')
  const { body: other } = await holder.post('/storage/objects', body)
  assert.equal(other.error, 'The server answered 404 without a code of S3: check endpoint')
  assert.equal(other.data, undefined)
  assert.deepEqual(
    t.log.filter((line) => line.includes(CREDENTIALS.secret_key)),
    [],
  )
})

test('an answer that is none of a storage server is 502, and no error of ours is told as one of the server', async () => {
  for (const text of [
    '',
    ' ',
    '<html><body>It works!</body></html>',
    '<?xml version="1.0"?><!-- page --><Error><Code>AccessDenied</Code></Error>',
    '<a>'.repeat(5_000),
    '<ListBucketResult><Contents><LastModified>yesterday</LastModified></Contents></ListBucketResult>',
    '<ListBucketResult><Contents>',
  ]) {
    answersWith(200, text)
    const { status, body: refusal } = await holder.post('/storage/objects', body)
    assert.deepEqual(
      [status, refusal.code, refusal.data],
      [502, 'storage_unavailable', undefined],
      text.slice(0, 80),
    )
    assert.match(refusal.error, /^Its answer /)
  }
  for (const text of ['<a>'.repeat(5_000), '<Error>&#xFFFFFFFF;</Error>']) {
    answersWith(500, text)
    const { status, body: refusal } = await holder.post('/storage/objects', body)
    assert.deepEqual([status, refusal.code, refusal.data], [502, 'storage_unavailable', undefined])
    assert.equal(refusal.error, 'The server answered 500 without a code of S3: check endpoint')
  }
  answersWith(200, '<html>Signed in</html>')
  const deleted = await holder.post('/storage/objects/delete', body)
  assert.deepEqual([deleted.status, deleted.body.code], [502, 'storage_unavailable'])
  const prologue = '<?xml version="1.0" encoding="UTF-8"?>\n<!-- a -->\n'
  answersWith(200, `${prologue}<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"/>`)
  assert.equal((await holder.post('/storage/objects', body)).status, 200)
})

test('a redirect is not followed', async () => {
  requests = 0
  answersWith(307, '', { location: `${server.url}/elsewhere` })
  assert.equal((await holder.post('/storage/objects', body)).status, 502)
  assert.equal(requests, 1)
})

const listing = (xml: string): string => `<ListBucketResult>${xml}</ListBucketResult>`

test('an answer that is too large or has document types costs no time', async () => {
  const types = '<!DOCTYPE x>'.repeat(20_000)
  const tags = listing('<Contents/>'.repeat(90_000))
  const attributes = `<ListBucketResult ${Array.from({ length: 100_000 }, (_, at) => `a${at}=""`).join(' ')}/>`
  const texts = [types, tags, attributes, listing(' '.repeat(8_000_000)), listing('&amp;'.repeat(800_000))]
  for (const text of texts) {
    answersWith(200, text)
    // The least, since the process does other things meanwhile.
    let least = Number.POSITIVE_INFINITY
    for (let tries = 0; tries < 4; tries++) {
      const began = process.cpuUsage()
      const { status, body: told } = await holder.post('/storage/objects', { ...body, max_keys: 1_000 })
      least = Math.min(least, process.cpuUsage(began).user)
      assert.deepEqual([status, /^Its answer (is too large; ask|has a doc)/.test(told.error)], [502, true])
    }
    assert.ok(least < 500_000, `parsing takes longer than ${least}: ${text.slice(0, 40)}`)
  }
})

test('a full page of a server that tells everything about each object is listed', async () => {
  const owner = '<Owner><ID>65a011a29cdf8ec533ec3d1ccaae921c</ID><DisplayName>owner</DisplayName></Owner>'
  const object = (key: number): string =>
    `<Contents><Key>2026/${key}/${'%E6%97%A5'.repeat(20)}.pdf</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>` +
    `<ETag>&quot;d41d8cd98f00b204e9800998ecf8427e&quot;</ETag><ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm>` +
    `<ChecksumType>FULL_OBJECT</ChecksumType><Size>${key}</Size><StorageClass>STANDARD</StorageClass>${owner}<RestoreStatus>` +
    `<IsRestoreInProgress>false</IsRestoreInProgress><RestoreExpiryDate>2026-02-01T00:00:00Z</RestoreExpiryDate></RestoreStatus></Contents>`
  const objects = Array.from({ length: 1_000 }, (_, key) => object(key)).join('')
  answersWith(200, listing(`<EncodingType>url</EncodingType>${objects}`))
  const listed = await holder.post('/storage/objects', { ...body, max_keys: 1_000 })
  assert.deepEqual([listed.status, listed.body.data?.key_count], [200, 1_000], listed.text.slice(0, 300))
})

test('numbers that are no sizes are not passed on', async () => {
  for (const number of ['NaN', 'Infinity', '1.5', '99999999999999999999']) {
    answersWith(
      200,
      listing(`<KeyCount>${number}</KeyCount><Contents><Key>a</Key><Size>${number}</Size></Contents>`),
    )
    const { status, body: listed } = await holder.post('/storage/objects', body)
    assert.deepEqual([status, listed.data?.key_count, listed.data?.objects[0].size], [200, 1, 0], number)
  }
})

test('a server that breaks off or does not exist is 502', async () => {
  answer = (_request, response) => response.destroy()
  assert.equal((await holder.post('/storage/objects', body)).body.code, 'storage_unavailable')
  const dead = await holder.post('/storage/objects', { ...body, endpoint: 'http://127.0.0.1:1' })
  assert.deepEqual([dead.status, dead.body.code], [502, 'storage_unavailable'])
  assert.match(dead.body.error, /^The connection failed: check host and port/)
})

test('a key that is revoked while the body arrives is refused', async () => {
  const { apiKey, keyId } = await t.key(['gateway.storage_proxy'])
  requests = 0
  const raw = await whileArriving(
    t.url,
    { path: '/storage/objects', headers: { apikey: apiKey }, body },
    () => t.admin.send('DELETE', `/admin/api-keys/${keyId}`),
  )
  assert.match(raw, /^HTTP\/1\.1 401 /)
  assert.equal(requests, 0)
})

test('calls that hang take a quarter of the places for one key, and half for one server', async () => {
  const hanging: ServerResponse[] = []
  answer = ({ headers }, response) => {
    if (headers.authorization?.includes('HANGING')) hanging.push(response)
    else response.end(EMPTY)
  }
  const others = await startLoopbackServer((_request, response) => response.end(EMPTY))
  const [second, third] = [await t.key(['gateway.storage_proxy']), await t.key(['gateway.storage_proxy'])]
  const hang = (caller: Actor) =>
    Array.from({ length: 20 }, () => caller.post('/storage/objects', { ...body, access_key_id: 'HANGING' }))
  const calls = hang(holder)
  while (hanging.length < 8) await sleep(5)
  assert.equal((await second.post('/storage/objects', body)).status, 200)
  calls.push(...hang(second))
  while (hanging.length < 16) await sleep(5)
  for (const caller of [third, t.admin]) {
    const listed = await caller.post('/storage/objects', { ...body, endpoint: others.url })
    assert.equal(listed.status, 200, listed.text)
  }
  assert.equal(hanging.length, 16)
  const answered = Promise.all(calls)
  const isDone = answered.then(() => true)
  while (!(await Promise.race([isDone, sleep(5)])))
    for (const response of hanging.splice(0)) response.writeHead(500).end()
  const statuses = new Set((await answered).map(({ status }) => status))
  // On a busy machine some have waited too long.
  statuses.delete(503)
  assert.deepEqual(statuses, new Set([502]))
})

const EMPTY = '<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>'

test('a server that does not answer in time is 504', async () => {
  const late = async (): Promise<never> => {
    throw new DOMException('The operation was aborted due to timeout', 'TimeoutError')
  }
  const calls = createS3Calls({ outbound: { send: late, refusal: () => undefined, close: async () => {} } })
  const presence = { hasLeft: () => false, signal: () => new AbortController().signal }
  const caller = { presence, payer: 'key' }
  await assert.rejects(listObjects(calls, body, caller), { status: 504, code: 'storage_timeout' })
  await calls.close()
})
