/**
 * Serves the page at http://localhost:3000. PORT and GATEHOUSE_URL change its port and the service that it calls, CLIENT the client there.
 * PAGES is the page's key:
 *
 *   PAGES=svc_… node examples/live/serve.mjs
 */
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'

const { PORT = '3000', PAGES: key = '', CLIENT: client = 'default' } = process.env
const { GATEHOUSE_URL: service = 'http://localhost:8080' } = process.env
const FILES = {
  '/': { name: 'index.html', type: 'text/html' },
  '/live.js': { name: 'live.js', type: 'text/javascript' },
}

const filled = (text, [name, value]) =>
  text.replace(new RegExp(`(<meta name="${name}" content=")[^"]*`), `$1${value}`)

const server = createServer(async ({ url }, response) => {
  const file = FILES[url]
  if (file === undefined) return response.writeHead(404).end()
  const text = await readFile(new URL(file.name, import.meta.url), 'utf8')
  response.setHeader('content-type', `${file.type}; charset=utf-8`)
  response.end(Object.entries({ service, client, key }).reduce(filled, text))
})
server.listen(Number(PORT), 'localhost', () => {
  console.log(`http://localhost:${server.address().port} calls ${service}`)
})
