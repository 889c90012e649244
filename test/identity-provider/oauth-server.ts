import { createHash, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'
import { CLIENT } from './visits.ts'

/**
 * An OAuth 2 server of GitHub's kind: no ID token, comma-separated scopes, failures of the token endpoint with status 200, and a list of
 * addresses at an endpoint of its own. It asks nobody.
 */
export type OauthServer = {
  readonly url: string
  /** Answer of `/user`. */
  user: Record<string, unknown>
  /** Answer of `/user/emails`. */
  emails: readonly Record<string, unknown>[]
  /** Sent with the code (RFC 9207). */
  iss: string | undefined
  readonly requests: string[]
}

type Issued = { readonly challenge: string; readonly redirectUri: string; readonly scope: string }

export async function startOauthServer(): Promise<OauthServer> {
  const codes = new Map<string, Issued>()
  const tokens = new Set<string>()
  const json = (response: ServerResponse, body: unknown, status = 200) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }

  const authorize = ({ searchParams: asked }: URL, response: ServerResponse) => {
    const code = randomUUID()
    const redirectUri = asked.get('redirect_uri') ?? ''
    const [challenge, scope] = [asked.get('code_challenge') ?? '', asked.get('scope') ?? '']
    codes.set(code, { challenge, redirectUri, scope: scope.replaceAll(' ', ',') })
    const back = new URL(redirectUri)
    back.searchParams.set('code', code)
    back.searchParams.set('state', asked.get('state') ?? '')
    if (server.iss !== undefined) back.searchParams.set('iss', server.iss)
    response.writeHead(302, { location: back.href }).end()
  }
  const redeem = async (request: IncomingMessage, response: ServerResponse) => {
    const form = new URLSearchParams(await textOf(request))
    const issued = codes.get(form.get('code') ?? '')
    codes.delete(form.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const isClient = form.get('client_id') === CLIENT.id && form.get('client_secret') === CLIENT.secret
    const isRight = issued?.challenge === challenge && issued.redirectUri === form.get('redirect_uri')
    if (!isClient || !isRight) return json(response, { error: 'bad_verification_code' })
    const access_token = randomUUID()
    tokens.add(access_token)
    json(response, { access_token, token_type: 'bearer', scope: issued.scope })
  }
  const describe = (path: string, request: IncomingMessage, response: ServerResponse) => {
    const [, token = ''] = request.headers.authorization?.split(' ') ?? []
    if (!tokens.has(token) || !request.headers['user-agent'])
      return json(response, { message: 'Bad credentials' }, 401)
    json(response, path === '/user' ? server.user : server.emails)
  }
  const listener = createServer((request, response) => {
    const url = new URL(request.url ?? '', server.url)
    server.requests.push(url.pathname)
    if (url.pathname === '/authorize') authorize(url, response)
    else if (url.pathname === '/token') redeem(request, response)
    else describe(url.pathname, request, response)
  })
  await new Promise<void>((listening) => listener.listen(0, '127.0.0.1', listening))
  after(() => listener.close().closeAllConnections())
  // The library types the address of any kind of server.
  const url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`
  const server: OauthServer = { url, user: {}, emails: [], iss: undefined, requests: [] }
  return server
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}
