import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { type Answer, testService } from '#test/harness.ts'
import { startLoopbackServer } from '#test/loopback-server.ts'

const json = (body: object) => JSON.stringify(body)
const seen: (string | undefined)[] = []
const answers: Record<string, RequestListener> = {
  healthy: (request, response) => {
    seen.push(request.url, request.headers.authorization)
    response.end(json({ name: 'Gatehouse', version: '9.9.9', routes: [] }))
  },
  failing: (_request, response) => response.writeHead(500).end(),
  page: (_request, response) => response.end('<html>'),
  // Another service of the same interface.
  related: (_request, response) => response.end(json({ cargo_toml_version: '3.1.4' })),
  unversioned: (_request, response) => response.end(json({ message: 'up' })),
  hanging: () => {},
  redirecting: (_request, response) => response.writeHead(302, { location: `${healthy}/elsewhere` }).end(),
  // Neither is read to its end.
  endless: (_request, response) => {
    const piece = Buffer.alloc(65_536, ' ')
    const more = () => {
      while (!response.destroyed && response.write(piece));
    }
    response.on('drain', more)
    more()
  },
  trickling: (_request, response) => {
    const timer = setInterval(() => response.write(' '), 100)
    response.on('close', () => clearInterval(timer))
  },
  // Ten megabytes in ten kilobytes.
  compressed: (_request, response) =>
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(10_000_000, ' '))),
  hostile: (_request, response) => response.end(json({ name: 'Gatehouse', version: '<b>\u202e\n' })),
}
const servers = await Promise.all(Object.values(answers).map((listener) => startLoopbackServer(listener)))
const [healthy = '', ...others] = servers.map(({ url }) => url)
const dead = 'http://127.0.0.1:1'

const t = await testService({
  config: {
    cluster: {
      mirrors: [healthy.replace('//', '//reader:secret@').concat('/?token=secret'), ...others, dead],
    },
  },
})

/** The answers to a hundred callers. On a busy machine a part may take longer than two seconds; after five it is asked again. */
async function answersInTime(): Promise<Answer[]> {
  for (let tries = 0; ; tries++) {
    const all = await Promise.all(Array.from({ length: 100 }, () => t.anon.get('/health/cluster')))
    const late = all[0]?.text.match(/no answer within 2000 ms/g)?.length ?? 0
    if (tries === 5 || (late === 2 && all[0]?.body.athena_deadpool === 'online')) return all
    seen.length = 0
    await sleep(5_000)
  }
}

test('cluster health shows versions, and each mirror with its state, without credentials', async () => {
  const all = await answersInTime()
  const [{ status, body, text } = await t.anon.get('/health/cluster')] = all
  assert.equal(new Set(all.map((answer) => answer.text)).size, 1)
  assert.equal(status, 200, text)
  const { version, athena_api, cargo_toml_version, athena_deadpool, athena_scylladb, mirrors } = body
  assert.deepEqual([athena_api, cargo_toml_version], [version, version])
  assert.deepEqual([athena_deadpool, athena_scylladb], ['online', 'not configured'])
  assert.deepEqual(
    mirrors.map((mirror: Record<string, unknown>) => [
      mirror.url,
      mirror.status,
      mirror.cargo_toml_version,
      mirror.message,
    ]),
    [
      [healthy, 'online', '9.9.9', 'answers'],
      [others[0], 'offline', '', 'answers 500'],
      [others[1], 'offline', '', 'does not answer with JSON'],
      [others[2], 'online', '3.1.4', 'answers'],
      [others[3], 'online', '', 'answers without a version'],
      [others[4], 'offline', '', 'no answer within 2000 ms'],
      [others[5], 'offline', '', 'answers 302'],
      [others[6], 'offline', '', 'does not answer with JSON'],
      [others[7], 'offline', '', 'no answer within 2000 ms'],
      [others[8], 'offline', '', 'does not answer with JSON'],
      [others[9], 'online', '', 'answers without a version'],
      [dead, 'offline', '', 'cannot be reached'],
    ],
  )
  assert.ok(mirrors[0].latency_ms > 0 && mirrors[0].download_bytes_per_sec > 0)
  assert.doesNotMatch(text, /secret/)
  assert.deepEqual(seen, ['/', `Basic ${Buffer.from('reader:secret').toString('base64')}`])
})

test('callers within five seconds share one probe', async () => {
  const before = seen.length
  await Promise.all(Array.from({ length: 30 }, () => t.anon.get('/health/cluster')))
  // None, unless the last one was five seconds ago.
  assert.ok(seen.length - before <= 2, `${seen}`)
})
