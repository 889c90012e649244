/** Reads each request and answers 204. Prints its port. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const server = createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(204).end())
}).listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo // a TCP server's
  console.log(port)
})
