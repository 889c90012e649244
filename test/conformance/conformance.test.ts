import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'
import endpoints from './endpoints.json' with { type: 'json' }

type Endpoint = {
  readonly method: string
  readonly path: string
  readonly access: string
  readonly built?: boolean
  readonly deviation?: string
}
type Surface = 'auth' | 'gateway'

const t = await testService()
const prefixes: Readonly<Record<Surface, string>> = { auth: t.config.auth.base_path, gateway: '' }
const surfaces = ['auth', 'gateway'] as const

const book = new Map(t.service.book.entries().map((entry) => [`${entry.method} ${entry.path}`, entry]))
const nameOf = (surface: Surface, { method, path }: Endpoint): string =>
  `${method} ${prefixes[surface]}${path}`

for (const surface of surfaces) {
  const interfaces: readonly Endpoint[] = endpoints.interface[surface]
  const additions: readonly Endpoint[] = endpoints.additions[surface]

  test(`${surface}: every endpoint listed as built exists with the listed access and is documented`, () => {
    // Fastify's type of the document is wider.
    const { paths = {} } = t.service.app.swagger() as { paths?: Record<string, Record<string, unknown>> }
    for (const endpoint of [...interfaces.filter(({ built }) => built), ...additions]) {
      const name = nameOf(surface, endpoint)
      const { access, surface: of } = book.get(name) ?? {}
      assert.deepEqual({ access, surface: of }, { access: endpoint.access, surface }, name)
      const isFile = /^\/(docs|dev\/mail|console)\b/.test(endpoint.path)
      const described = paths[prefixes[surface] + endpoint.path]?.[endpoint.method.toLowerCase()]
      assert.equal(described !== undefined, !isFile, `${name} in openapi.json`)
    }
  })

  test(`${surface}: endpoints listed as not built return 404 or 405`, async () => {
    for (const endpoint of interfaces.filter(({ built }) => !built)) {
      const { method } = endpoint
      const path = prefixes[surface] + endpoint.path.replace(/\{\w+\}/g, 'x')
      const answer = await t.admin.send(method, path, method === 'GET' ? {} : { body: {} })
      // Another method of the same path may be built already.
      const isTaken = t.service.book.methodsAt(path).length > 0
      assert.equal(answer.status, isTaken ? 405 : 404, `${method} ${path}`)
      const code = isTaken ? 'method_not_allowed' : 'not_found'
      assert.equal(answer.body.code, surface === 'auth' ? code.toUpperCase() : code, `${method} ${path}`)
      assert.deepEqual(Object.keys(answer.body), surface === 'auth' ? ['message', 'code'] : GATEWAY_ENVELOPE)
    }
  })
}

const GATEWAY_ENVELOPE = ['status', 'message', 'error', 'code', 'request_id']

test('every registered route is listed exactly once', (context) => {
  const { interface: contract, additions } = endpoints
  const listed = surfaces.flatMap((surface) =>
    [...contract[surface], ...additions[surface]].map((endpoint) => nameOf(surface, endpoint)),
  )
  assert.deepEqual(
    listed.filter((name, index) => listed.indexOf(name) !== index),
    [],
  )
  assert.deepEqual(
    [...book.keys()].filter((name) => !listed.includes(name)),
    [],
  )

  const all = surfaces.flatMap((surface) => contract[surface])
  context.diagnostic(`built ${all.filter(({ built }) => built).length} of ${all.length}`)
})
