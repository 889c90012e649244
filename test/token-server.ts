import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'

/** An OAuth 2 server that counts the refreshes, and accepts each refresh token once. */
export type TokenServer = {
  readonly url: string
  /** The refresh tokens that were sent, in order. */
  readonly refreshes: readonly string[]
  /** Changes the answers from now on: an error of the token endpoint, or none until `release` is called. */
  answerWith(how: 'tokens' | 'invalid_grant' | 'server_error' | 'silence'): void
  /** Resolves once this many refreshes have arrived. */
  arrived(count: number): Promise<void>
  /** Answers the requests that are held. */
  release(): void
  /** Settings of a provider on this server, for `auth.social.providers`. */
  readonly settings: {
    readonly type: 'oauth2'
    readonly client_id: string
    readonly client_secret: string
    readonly authorization_url: string
    readonly token_url: string
    readonly userinfo_url: string
  }
}

/** Access tokens of a refresh begin with it; the refresh token follows. */
export const REFRESHED = 'access after '

/** It is closed after the file's tests. New tokens live for `lifetime` seconds. */
export async function startTokenServer({ lifetime = 3_600 } = {}): Promise<TokenServer> {
  const refreshes: string[] = []
  const used = new Set<string>()
  const waiting = new Set<() => void>()
  let how: Parameters<TokenServer['answerWith']>[0] = 'tokens'
  let release = Promise.withResolvers<void>()

  function refresh(given: string): readonly [number, object] {
    if (how === 'server_error') return [500, { error: 'server_error' }]
    if (how === 'invalid_grant' || used.has(given)) return [400, { error: 'invalid_grant' }]
    used.add(given)
    const tokens = { access_token: `${REFRESHED}${given}`, refresh_token: `${given}+`, token_type: 'Bearer' }
    return [200, { ...tokens, expires_in: lifetime, scope: 'profile email' }]
  }

  async function answer(request: IncomingMessage): Promise<readonly [number, object]> {
    const { pathname } = new URL(request.url ?? '', 'http://localhost')
    const token = request.headers.authorization?.replace('Bearer ', '')
    if (pathname === '/user') return [200, { id: 4711, name: 'Ada', email: 'ada@example.com', token }]
    const form = new URLSearchParams((await request.toArray()).join(''))
    refreshes.push(form.get('refresh_token') ?? '')
    for (const look of waiting) look()
    if (how === 'silence') await release.promise
    return refresh(form.get('refresh_token') ?? '')
  }

  const server = createServer(async (request, response) => {
    const [status, body] = await answer(request)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  after(() => {
    release.resolve()
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo // a TCP server's
  const url = `http://127.0.0.1:${port}`
  return {
    url,
    refreshes,
    answerWith(next) {
      how = next
    },
    arrived: (count) =>
      new Promise((resolve) => {
        const look = () => {
          if (refreshes.length < count) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
    release() {
      how = 'tokens'
      release.resolve()
      release = Promise.withResolvers()
    },
    settings: {
      type: 'oauth2',
      client_id: 'gatehouse',
      client_secret: 'the secret of the client',
      authorization_url: `${url}/authorize`,
      token_url: `${url}/token`,
      userinfo_url: `${url}/user`,
    },
  }
}
