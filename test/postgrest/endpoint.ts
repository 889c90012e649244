/**
 * A server with PostgREST's HTTP interface on a real PostgreSQL database. It was written for these tests from PostgREST's documentation and
 * implements only the parts that the driver uses. It shares no code with the driver: grammar.ts parses the requests that the driver writes.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { GrammarError } from './grammar.ts'
import { call, type Reply, read, write } from './operations.ts'
import { Refused } from './sql.ts'
import { openApiOf, readSchema } from './structure.ts'

export type Endpoint = {
  /** `http://:KEY@127.0.0.1:PORT` */
  readonly url: string
  readonly key: string
  /** Method and path of all requests since the start. */
  readonly asked: readonly string[]
  /** Handles requests instead of the endpoint. Returning false passes a request on. */
  intercept: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined
  /** PostgREST's setting db-max-rows. */
  maxRows: number | undefined
  close(): Promise<void>
}

export async function startPostgrestEndpoint(databaseUrl: string, schemas = ['public']): Promise<Endpoint> {
  const key = 'the-key-of-this-project.sb_secret-0123456789'
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 4, options: '-c timezone=UTC' })
  // A connection may receive its database's shutdown error after the pool has released it.
  pool.on('error', () => {})
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    if (endpoint.intercept?.(request, response)) return
    answer(request).then(
      ({ status, body = '', headers = {} }) =>
        response
          .writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers })
          .end(request.method === 'HEAD' ? undefined : body),
      (error) => response.writeHead(500).end(String(error)),
    )
  })

  async function answer(request: IncomingMessage): Promise<Reply> {
    try {
      if (request.headers.apikey !== key) return refused(401, { message: 'Invalid API key' })
      if (request.headers.authorization !== `Bearer ${key}`)
        throw new Refused(401, 'PGRST301', 'JWSError JWSInvalidSignature')
      return await reply(request)
    } catch (error) {
      if (error instanceof Refused)
        return refused(
          error.status,
          { code: error.code, message: error.message, details: null, hint: null },
          error.headers,
        )
      if (error instanceof GrammarError)
        return refused(400, { code: 'PGRST100', message: error.message, details: null, hint: null })
      const { code, message, detail = null, hint = null } = error as pg.DatabaseError
      if (code === undefined) throw error
      return refused(statusOf(code), { code, message, details: detail, hint })
    }
  }

  async function reply(request: IncomingMessage): Promise<Reply> {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://postgrest')
    const [, ...segments] = pathname
      .replace(/^\/rest\/v1/, '')
      .split('/')
      .map(decodeURIComponent)
    const { method = 'GET' } = request
    const profile =
      request.headers[method === 'GET' || method === 'HEAD' ? 'accept-profile' : 'content-profile']
    const name = String(profile ?? schemas[0])
    if (!schemas.includes(name)) throw new Refused(406, 'PGRST106', `Invalid schema: ${name}`)
    const schema = { ...(await readSchema(pool, name)), maxRows: endpoint.maxRows }
    const [first = '', second] = segments
    if (first === '') return { status: 200, body: JSON.stringify(openApiOf(schema)) }
    const asking = {
      pool,
      schema,
      method,
      params: searchParams,
      prefer: String(request.headers.prefer ?? ''),
      body: await bodyOf(request),
      maxRows: endpoint.maxRows,
    }
    if (first === 'rpc' && second !== undefined) return call(asking, second)
    if (second !== undefined) throw new Refused(404, 'PGRST125', 'Invalid path specified in request URL')
    if (!schema.tables.has(first))
      throw new Refused(404, 'PGRST205', `Could not find the table '${name}.${first}' in the schema cache`)
    return method === 'GET' || method === 'HEAD' ? read(asking, first) : write(asking, first)
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo // the address of a TCP server
  const endpoint: Endpoint = {
    url: `http://:${key}@127.0.0.1:${port}`,
    key,
    asked,
    intercept: undefined,
    maxRows: undefined,
    async close() {
      server.closeAllConnections()
      server.close()
      await pool.end()
    },
  }
  return endpoint
}

const refused = (status: number, body: object, headers: Readonly<Record<string, string>> = {}): Reply => ({
  status,
  body: JSON.stringify(body),
  headers,
})

function statusOf(code: string): number {
  if (code === '23505' || code === '23503') return 409
  if (code === '42501') return 403
  if (code === '42883' || code === '42P01') return 404
  return /^(5|XX|08)/.test(code) ? 500 : 400
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
