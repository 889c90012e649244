/**
 * The hash of a password alone, behind node:http: `/verify` checks one, `/hash` makes one, with the service's parameters and as many at once.
 * Prints its port and serves until it is killed. `node bench/peers/by-hand/hash.ts`
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hash, verify } from '@node-rs/argon2'
import { defaultConfig } from '#kernel/config/config.ts'
import { createSemaphore } from '#kernel/semaphore.ts'

const { memory, iterations, parallelism, concurrency } = defaultConfig({}).auth.password
const cost = { memoryCost: memory, timeCost: iterations, parallelism }
const PASSWORD = 'correct horse battery'
const stored = await hash(PASSWORD, cost)
const works: Readonly<Record<string, () => Promise<unknown>>> = {
  '/verify': () => verify(stored, PASSWORD),
  '/hash': () => hash(PASSWORD, cost),
}
const turns = createSemaphore(concurrency, { max: 10_000, refusal: () => new Error('too many') })
const server = createServer((request, response) => {
  request.resume().on('end', async () => {
    await turns.run(works[request.url ?? ''] ?? (async () => {}))
    response.end('{"ok":true}')
  })
}).listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo // a TCP server's
  console.log(port)
})
