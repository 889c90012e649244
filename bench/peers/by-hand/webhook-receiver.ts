/** Reads each request and answers 204; `/count` tells how many there were. Prints its port. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

let count = 0
const server = createServer((request, response) => {
  if (request.url === '/count') return void response.end(`${count}`)
  request.resume().on('end', () => {
    count++
    response.writeHead(204).end()
  })
}).listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo // a TCP server's
  console.log(port)
})
