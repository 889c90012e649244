import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actor, testService } from '#test/harness.ts'
import { WITHOUT_S3 } from '#test/s3/program.ts'
import { startS3Server } from '#test/s3/server.ts'

const KEYS = [
  'plain.txt',
  'a folder/with spaces + plus & ampersand.txt',
  'a folder/b/deep.txt',
  'größe/日本語/🙂.txt',
  '100%25.txt',
  `quote'"<xml>&amp;.txt`,
]

test('object storage on an S3-compatible server that checks signatures', { skip: WITHOUT_S3 }, async (t) => {
  const { access } = await startS3Server({ buckets: ['reports', 'many'] })
  const service = await testService({
    config: { outbound: { allow_networks: ['127.0.0.0/8'], allow_http: true } },
  })
  const key = await service.key(['gateway.storage_proxy'])
  const ask = (path: string, body: object, bucket = 'reports') =>
    actor(service.url, { apikey: key.apiKey }).post(`/storage/objects${path}`, { ...access, bucket, ...body })
  const listed = async (body: object, bucket?: string) => {
    const answer = await ask('', body, bucket)
    assert.equal(answer.status, 200, answer.text)
    return answer.body.data
  }
  const upload = async (name: string, text: string, bucket?: string) => {
    const signed = await ask('/upload-url', { key: name, content_type: 'text/plain' }, bucket)
    assert.equal(signed.status, 200, signed.text)
    const { url, method, headers } = signed.body.data
    const { status } = await fetch(url, { method, headers, body: text })
    assert.equal(status, 200, name)
    return url
  }

  await t.test('what a signed URL uploads is listed, found, read by a signed URL, and deleted', async () => {
    for (const name of KEYS) await upload(name, `text of ${name}`)
    const { objects, key_count, is_truncated, next_continuation_token } = await listed({})
    const names = objects.map((object: { key: string }) => object.key)
    assert.deepEqual(
      names,
      KEYS.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
    )
    assert.deepEqual([key_count, is_truncated, next_continuation_token], [KEYS.length, false, null])
    for (const name of KEYS) {
      const { size, content_type, last_modified } = (await ask('/head', { key: name })).body.data
      assert.deepEqual([size, content_type], [Buffer.byteLength(`text of ${name}`), 'text/plain'])
      assert.ok(Math.abs(Date.parse(last_modified) - Date.now()) < 60_000)
      const { url } = (await ask('/url', { key: name })).body.data
      assert.equal(await (await fetch(url)).text(), `text of ${name}`)
    }
    assert.equal((await ask('/delete', { key: 'plain.txt' })).status, 200)
    const gone = await ask('/head', { key: 'plain.txt' })
    assert.deepEqual([gone.status, gone.body.code], [404, 'object_not_found'])
  })

  await t.test('a delimiter groups keys, and a prefix selects them', async () => {
    const top = await listed({ delimiter: '/' })
    assert.deepEqual(top.common_prefixes, ['a folder/', 'größe/'])
    const folder = await listed({ delimiter: '/', prefix: 'a folder/' })
    assert.deepEqual(folder.common_prefixes, ['a folder/b/'])
    assert.deepEqual(
      folder.objects.map((object: { key: string }) => object.key),
      ['a folder/with spaces + plus & ampersand.txt'],
    )
  })

  await t.test('pages follow each other without gaps, and max_keys is clamped to 1 to 1,000', async () => {
    const names = Array.from({ length: 23 }, (_, index) => `${index}`.padStart(3, '0'))
    for (const name of names) await upload(name, name, 'many')
    const found: string[] = []
    let token: string | null = null
    let pages = 0
    do {
      const page: { objects: { key: string }[]; next_continuation_token: string | null } = await listed(
        { max_keys: 10, continuation_token: token ?? '' },
        'many',
      )
      found.push(...page.objects.map((object) => object.key))
      token = page.next_continuation_token
      pages++
    } while (token !== null && pages < 10)
    assert.deepEqual([found, pages], [names, 3])
    assert.equal((await listed({ max_keys: 0 }, 'many')).objects.length, 1)
    assert.equal((await listed({ max_keys: -5 }, 'many')).objects.length, 1)
    assert.equal((await listed({ max_keys: 2 ** 31 - 1 }, 'many')).objects.length, 23)
  })

  await t.test(
    'wrong credentials are 403, a missing bucket is 404, and neither repeats a secret',
    async () => {
      for (const [body, status, code, advice] of [
        [
          { secret_key: 'wrong secret' },
          403,
          'storage_access_denied',
          /SignatureDoesNotMatch: check secret_key$/,
        ],
        [
          { access_key_id: 'stranger' },
          403,
          'storage_access_denied',
          /InvalidAccessKeyId: check access_key_id$/,
        ],
        [
          { region: 'eu-nowhere-1' },
          502,
          'storage_unavailable',
          /AuthorizationHeaderMalformed: check region$/,
        ],
        [{ bucket: 'absent' }, 404, 'bucket_not_found', /The server answered NoSuchBucket$/],
      ] as const) {
        const answer = await ask('', body)
        assert.deepEqual([answer.status, answer.body.code], [status, code], answer.text)
        assert.match(answer.body.error, advice)
        for (const secret of ['wrong secret', access.secret_key])
          assert.doesNotMatch(answer.text, new RegExp(secret))
      }
    },
  )

  await t.test('a signed URL is bound to its method, its type and its time', async () => {
    const { url } = (await ask('/url', { key: 'a folder/b/deep.txt', expires_in: 60 })).body.data
    assert.equal((await fetch(url, { method: 'PUT', body: 'x' })).status, 403)
    assert.equal((await fetch(url.replace('X-Amz-Expires=60', 'X-Amz-Expires=6000'))).status, 403)
    const signed = await ask('/upload-url', { key: 'page.html', content_type: 'text/plain' })
    const headers = { 'content-type': 'text/html' }
    assert.equal((await fetch(signed.body.data.url, { method: 'PUT', headers, body: 'x' })).status, 403)
    assert.equal((await ask('/head', { key: 'page.html' })).status, 404)
  })
  assert.ok(!service.log.join('').includes(access.secret_key))
})
