import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'

const url = (name: string) => JSON.stringify(new URL(name, import.meta.url).href)

/** The modules that each of these loads at its first use are read while there is no file left, and then again. */
const SCRIPT = `
import { closeSync, openSync } from 'node:fs'
import { createServer } from 'node:http'
import { createDirectRequests, createOutboundRequests } from ${url('./http/outbound/outbound.ts')}
import { createSmtpTransport } from ${url('./mail/transports.ts')}
const server = createServer((_request, response) => response.end()).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const here = 'http://127.0.0.1:' + server.address().port
const outbound = createOutboundRequests({ outbound: { allow_http: true, allow_networks: ['127.0.0.1'] } })
const direct = createDirectRequests({ connectTimeout: 1000, idleTimeout: 1000 })
const smtp = createSmtpTransport({ mail: { smtp_url: 'smtp://127.0.0.1:1', from: 'a@example.com' } })
const asked = { timeout: 5000, maxBytes: 10 }
const uses = {
  outbound: async () => (await outbound.send(here, asked)).status,
  direct: async () => (await direct.send(here, asked)).status,
  mail: () => smtp.send({ to: 'b@example.com', subject: '', text: '' }),
}
const outcomes = async () => {
  const all = {}
  for (const [name, use] of Object.entries(uses)) all[name] = await use().catch(({ message }) => message)
  return all
}
const files = []
try {
  for (;;) files.push(openSync('/dev/null'))
} catch {}
const without = await outcomes()
for (const file of files) closeSync(file)
console.log(JSON.stringify({ without, after: await outcomes() }))
process.exit()`

test('what was first used while the process could open no file works as soon as it can', {
  skip: process.platform !== 'linux',
}, async () => {
  const script = [process.execPath, '--input-type=module', '-e', SCRIPT]
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', 'ulimit -n 256; exec "$0" "$@"', ...script])
  const { without, after } = JSON.parse(stdout)
  for (const outcome of Object.values(without)) assert.match(String(outcome), /too many open files|EMFILE/)
  const { mail, ...others } = after
  assert.deepEqual(others, { outbound: 200, direct: 200 })
  assert.match(mail, /ECONNREFUSED/)
})
