import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultConfig } from '#kernel/config/config.ts'
import { OUTBOUND, HOOK_SECRET as secret } from '#test/hooks.ts'
import { startLoopbackServer } from '#test/loopback-server.ts'
import { hookFindings } from './hook-checks.ts'

const methods: (string | undefined)[] = []
const { url } = await startLoopbackServer(({ method }, response) => {
  methods.push(method)
  response.writeHead(405).end('only POST')
})

async function findings(urls: readonly string[], outbound: object = OUTBOUND) {
  const hooks = Object.fromEntries(urls.map((url, index) => [`h${index}`, { url, secret, on: ['sign_in'] }]))
  const found = await hookFindings(defaultConfig({ auth: { hooks }, outbound }))
  return found.map(({ subject, ok, says }) => `${subject} ${ok ? 'ok' : 'BAD'}: ${says}`)
}

test('the doctor reaches each hook without a call that decides something', async () => {
  const [found, absent] = await findings([`${url}/hook`, 'http://127.0.0.1:1/hook'])
  assert.match(found ?? '', /^hook h0 ok: its address answers \(405 to GET\)/)
  assert.match(absent ?? '', /^hook h1 BAD: auth\.hooks\.h1\.url cannot be reached: .*ECONNREFUSED/)
  assert.deepEqual(methods, ['GET'])
})

test('the doctor says that the rules of outbound requests forbid a hook', async () => {
  const [found] = await findings([url], { allow_http: true })
  assert.match(found ?? '', /BAD: .*private network \(outbound.allow_networks opens exceptions\)/)
})
