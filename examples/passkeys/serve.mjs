/**
 * Serves the page at http://localhost:3000. PORT and GATEHOUSE_URL change its port and the service that it calls:
 *
 *   node examples/passkeys/serve.mjs
 */
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'

const { PORT = '3000', GATEHOUSE_URL: service = 'http://localhost:8080' } = process.env
const FILES = {
  '/': { name: 'index.html', type: 'text/html' },
  '/passkeys.js': { name: 'passkeys.js', type: 'text/javascript' },
}

const server = createServer(async ({ url }, response) => {
  const file = FILES[url]
  if (file === undefined) return response.writeHead(404).end()
  const text = await readFile(new URL(file.name, import.meta.url), 'utf8')
  response.setHeader('content-type', `${file.type}; charset=utf-8`)
  response.end(text.replace('content="http://localhost:8080"', `content="${service}"`))
})
server.listen(Number(PORT), 'localhost', () => {
  console.log(`http://localhost:${server.address().port} calls ${service}`)
})
