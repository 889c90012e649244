import assert from 'node:assert/strict'
import { type AddressInfo, createServer } from 'node:net'
import { after, beforeEach, test } from 'node:test'
import { hostPatternForm } from '#kernel/config/addresses.ts'
import type { Resolve } from '#kernel/http/outbound/outbound.ts'
import { actor, testService } from '#test/harness.ts'
import { startLoopbackServer } from '#test/loopback-server.ts'
import { addEvents, addWebhook } from '#test/webhooks.ts'
import { FORBIDDEN_HOSTS, FORBIDDEN_NAMES } from './outbound-addresses.ts'

/** A server of the private network: it must not be connected to. */
let connections = 0
const trap = createServer((socket) => {
  connections++
  socket.destroy()
}).listen(0)
await new Promise((resolve) => trap.once('listening', resolve))
after(() => trap.close())
const { port } = trap.address() as AddressInfo // a TCP server's

/** An endpoint that the operator has allowed. */
let location = ''
let requests = 0
const allowed = await startLoopbackServer((_request, response) => {
  requests++
  if (location === '') response.writeHead(200, { connection: 'close' }).end('[]')
  else response.writeHead(307, { location, connection: 'close' }).end()
}, '127.0.0.2')

/** Names of the resolver that the service uses. A list of lists: one after the other. */
const names = new Map<string, readonly (readonly string[])[]>(
  Object.entries({ ...FORBIDDEN_NAMES, 'public.example': ['127.0.0.1'] }).map(([name, found]) => [
    name,
    [found],
  ]),
)
const resolve: Resolve = (hostname, _options, callback) => {
  const [next, ...others] = names.get(hostname.replace(/\.$/, '')) ?? []
  if (others.length > 0) names.set(hostname, others)
  if (next === undefined) return callback(Object.assign(new Error('not found'), { code: 'ENOTFOUND' }), [])
  callback(
    null,
    next.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
  )
}

const written = [...FORBIDDEN_HOSTS, ...Object.keys(FORBIDDEN_NAMES)].map((host) => `http://${host}:${port}`)
/** So that the rules of outbound requests have to refuse them, not this list. */
const allowed_hosts = [
  ...[`*.example:${port}`, `*.example:${allowed.port}`, `127.0.0.2:${allowed.port}`],
  ...written.map((url) => URL.parse(url)?.host ?? '').filter((host) => hostPatternForm.parse(host) === host),
]
const t = await testService({
  config: {
    outbound: { allow_http: true, allow_networks: ['127.0.0.2'] },
    gateway: { custom_supabase: { allowed_hosts } },
  },
  resolve,
})
const { kernel, deliveries } = t.service

/** How a feature answers to callers who name these addresses; each starts a request if it may. */
const FEATURES: Readonly<Record<string, (urls: readonly string[]) => Promise<readonly string[]>>> = {
  async webhooks(urls) {
    const ids: string[] = []
    for (const url of urls) {
      const { id } = await addWebhook(kernel, { url, timeoutMs: 2_000 })
      await addEvents(kernel, id)
      ids.push(id)
    }
    await deliveries.drain()
    const rows = await kernel.db
      .selectFrom('webhookDelivery')
      .select(['webhookId', 'error', 'responseStatus'])
      .where('webhookId', 'in', ids)
      .execute()
    await kernel.db.updateTable('webhook').set({ isActive: false }).execute()
    const answers = new Map(rows.map((row) => [row.webhookId, `${row.responseStatus ?? row.error}`]))
    return ids.map((id) => answers.get(id) ?? '')
  },
  storage: inTurn(async (endpoint) => {
    const credentials = { region: 'eu-test-1', access_key_id: 'AKIATEST', secret_key: 'a very secret key' }
    const { status, body } = await t.admin.post('/storage/objects', {
      ...credentials,
      bucket: 'reports',
      endpoint,
    })
    return `${status} ${body.code}`
  }),
  custom_supabase: inTurn(async (url) => {
    // A header holds bytes, and no line break.
    const project = Buffer.from(url.replace(/[\n\t]/, ' ')).toString('latin1')
    const headers = {
      'x-service-client': 'custom_supabase',
      'x-supabase-url': project,
      'x-supabase-key': 'key',
    }
    const { status, body } = await actor(t.url, { ...t.admin.headers, ...headers }).post('/gateway/fetch', {
      table_name: 'note',
    })
    return `${status} ${body.code}`
  }),
}

function inTurn(call: (url: string) => Promise<string>) {
  return async (urls: readonly string[]): Promise<readonly string[]> => {
    const answers: string[] = []
    for (const url of urls) answers.push(await call(url))
    return answers
  }
}

const REFUSED: Readonly<Record<string, RegExp>> = {
  webhooks: /^The address is refused: /,
  storage: /^400 invalid_endpoint$/,
  custom_supabase: /^400 invalid_project$/,
}

beforeEach(() => {
  location = ''
  requests = 0
})

test('a host that does not exist is refused as a mistake of the caller', async () => {
  for (const feature of ['storage', 'custom_supabase'])
    assert.match(`${await FEATURES[feature]?.([`http://nowhere.example:${port}`])}`, REFUSED[feature] ?? /^$/)
})

for (const [feature, call] of Object.entries(FEATURES)) {
  const refused = REFUSED[feature] ?? /^$/

  test(`${feature}: no spelling of a forbidden address is connected to, and no name of one`, async () => {
    const answers = await call(written)
    const wrong = answers
      .map((answer, index) => [written[index], answer])
      .filter(([, answer = '']) => !refused.test(answer))
    assert.deepEqual(wrong, [])
    assert.equal(connections, 0)
    assert.ok(written.length > 90, `${written.length} forms`)
  })

  test(`${feature}: a name that points elsewhere at the connection is refused there`, async () => {
    const name = `rebinding-${feature.replace('_', '-')}.example`
    names.set(name, [['127.0.0.2'], ['127.0.0.1'], ['::1', '127.0.0.1']])
    const [first = ''] = await call([`http://${name}:${allowed.port}`])
    assert.doesNotMatch(first, refused, 'the first address is allowed')
    assert.ok(requests > 0)
    requests = 0
    for (const answer of await call([1, 2].map(() => `http://${name}:${port}`))) assert.match(answer, refused)
    assert.deepEqual([requests, connections], [0, 0])
  })

  test(`${feature}: a redirect into the private network is not followed`, async () => {
    for (const host of ['127.0.0.1', '[::1]', 'loopback.example']) {
      location = `http://${host}:${port}/`
      const [answer = ''] = await call([`http://127.0.0.2:${allowed.port}`])
      assert.doesNotMatch(answer, refused)
      assert.ok(requests > 0)
    }
    assert.equal(connections, 0)
  })
}
