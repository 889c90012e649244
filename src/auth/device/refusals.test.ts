import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'
import { exchange, requestBytes } from '#test/hostile/raw-http.ts'

const t = await testService({ config: { limits: { timeout: 700 } } })
const port = Number(new URL(t.url).port)

type Header = readonly [name: string, value: string]
const JSON_BODY: Header = ['content-type', 'application/json']
const ROUTES = [
  ['GET', '/device'],
  ['POST', '/device/code'],
  ['POST', '/device/token'],
  ['POST', '/device/approve'],
  ['POST', '/device/deny'],
] as const

type Refused = readonly [status: number, headers: readonly Header[], body?: string]
const OF_ANY: Readonly<Record<string, Refused>> = {
  'a NUL in a header': [400, [['x-user-id', 'a\0b']]],
  'a space in the name of a header': [400, [['a b', 'c']]],
  'a second Host': [400, [['host', 'elsewhere']]],
  'headers that are somewhat too large': [431, [['x-a', 'a'.repeat(17_000)]]],
  'headers that are far too large': [431, [['x-a', 'a'.repeat(40_000)]]],
}
const OF_BODY: Readonly<Record<string, Refused>> = {
  'malformed JSON': [400, [JSON_BODY], '{'],
  'a body without the members': [400, [JSON_BODY], '{}'],
  'an unknown media type': [415, [['content-type', 'image/png']], 'a'],
  'a body that is too large': [413, [JSON_BODY], `"${'a'.repeat(2 * 2 ** 20)}"`],
  'a body that does not arrive': [408, [JSON_BODY, ['content-length', '99']]],
}

async function refuses([method, route]: (typeof ROUTES)[number], [status, headers, body]: Refused) {
  const path = `/api/auth${route}?user_code=BCDF-GHJK`
  const given = body === undefined ? {} : { body: Buffer.from(body) }
  const reply = await exchange(port, requestBytes({ method, path, headers, ...given }))
  assert.ok(reply, route)
  assert.equal(reply.status, status, `${route}: ${reply.text}`)
  const { message, code, error, error_description: description, ...others } = JSON.parse(reply.text)
  assert.deepEqual(others, {}, reply.text)
  assert.match(code, /^[A-Z_]+$/)
  assert.match(error, /^[a-z_]+$/)
  assert.equal(description, message)
}

for (const [what, refused] of Object.entries(OF_ANY))
  test(`${what} is refused with the members of OAuth 2.0 on every route`, async () => {
    for (const route of ROUTES) await refuses(route, refused)
  })

for (const [what, refused] of Object.entries(OF_BODY))
  test(`${what} is refused with the members of OAuth 2.0`, async () => {
    for (const route of ROUTES.slice(1, 3)) await refuses(route, refused)
  })

test('other routes, and paths without a route, have only the members of their surface', async () => {
  const headers = [['x-user-id', 'a\0b']] as const
  for (const path of ['/api/auth/get-session', '/api/auth/device/nowhere', '/api/auth/devices']) {
    const reply = await exchange(port, requestBytes({ method: 'GET', path, headers }))
    assert.deepEqual(Object.keys(JSON.parse(reply?.text ?? '')).sort(), ['code', 'message'], path)
  }
})
