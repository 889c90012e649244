import {
  allowInsecureRequests,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  type CustomFetch,
  customFetch,
  discovery,
  None,
} from 'openid-client'
import type { Kernel } from '#kernel/kernel.ts'
import { type Provider, type ProviderSettings, type Server, serverOf } from '../providers/provider.ts'
import { createPublishedDocument } from './published-document.ts'
import type { ProviderRequests } from './requests.ts'

/** The parameters of openid-client for one provider: endpoints, id and secret of the client, and the function that sends. */
export type Connection = () => Promise<Configuration>

/** Milliseconds after which the endpoints of an issuer are discovered again. */
const DISCOVERED_FOR = 3_600_000

export function createConnection(
  kernel: Pick<Kernel, 'config' | 'now' | 'log'>,
  { name, provider, settings, send }: Target,
): Connection {
  const server = serverOf(provider, settings)
  let secret = settings.client_secret
  const authenticate: ClientAuth = (...request) => authentication(settings, server, secret, request)
  const endpoints = createPublishedDocument(kernel, { name, subject: 'endpoints' }, () =>
    configurationOf(kernel, { server, settings, authenticate, send }),
  )
  return async () => {
    if (provider.clientSecret !== undefined) secret = await provider.clientSecret(settings, kernel.now())
    try {
      return await endpoints.newerThan(DISCOVERED_FOR)
    } catch (error) {
      // The endpoints of an issuer hardly ever change.
      const last = endpoints.last()
      if (last === undefined) throw error
      return last
    }
  }
}

type Target = {
  readonly name: string
  readonly provider: Provider
  readonly settings: ProviderSettings
  readonly send: ProviderRequests
}

async function configurationOf(
  { config }: Pick<Kernel, 'config'>,
  {
    server,
    settings: { client_id = '' },
    authenticate,
    send,
  }: Omit<Target, 'name' | 'provider'> & { readonly server: Server; readonly authenticate: ClientAuth },
): Promise<Configuration> {
  const execute = config.outbound.allow_http ? [allowInsecureRequests] : []
  const fetch = fetchBy(send)
  if (server.type === 'oidc') {
    const options = { [customFetch]: fetch, execute }
    const discovered = await discovery(new URL(server.issuer), client_id, undefined, authenticate, options)
    expectWebAddress(config, discovered.serverMetadata().authorization_endpoint)
    return discovered
  }
  const endpoints = {
    issuer: server.issuer,
    authorization_endpoint: server.authorizationUrl,
    token_endpoint: server.tokenUrl,
    userinfo_endpoint: server.userinfoUrl,
  }
  const configuration = new Configuration(endpoints, client_id, undefined, authenticate)
  configuration[customFetch] = fetch
  for (const allow of execute) allow(configuration)
  return configuration
}

/** A page goes there by script, and `javascript:` would run in it. The other endpoints are judged as all outbound requests are. */
function expectWebAddress({ outbound }: Kernel['config'], endpoint: unknown): void {
  const { protocol } = (typeof endpoint === 'string' && URL.parse(endpoint)) || { protocol: undefined }
  if (protocol !== 'https:' && !(protocol === 'http:' && outbound.allow_http))
    throw new Error(`the authorization endpoint is no web address: ${JSON.stringify(endpoint)}`)
}

/** A `fetch` for the library. `send` has its own deadline, so the library's signal is only an end that comes later. */
const fetchBy =
  (send: ProviderRequests): CustomFetch =>
  async (url, { method, headers, body, signal }) => {
    const {
      status,
      headers: received,
      body: bytes,
    } = await send(url, {
      // The library sends GET and POST only.
      method: method === 'POST' ? 'POST' : 'GET',
      headers,
      ...(body === null || body === undefined ? {} : { body: textOf(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
    const flat = Object.entries(received).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, [value].flat().join(', ')] as [string, string]],
    )
    return new Response([204, 304].includes(status) ? null : new Uint8Array(bytes), { status, headers: flat })
  }

function textOf(body: Exclude<Parameters<CustomFetch>[1]['body'], null | undefined>): string {
  if (typeof body === 'string' || body instanceof URLSearchParams) return String(body)
  throw new TypeError('the library sends forms only')
}

/** By default in the body, which every known provider takes; the standard's own default is the header (RFC 6749, section 2.3.1). */
function authentication(
  { client_authentication: chosen }: ProviderSettings,
  { type }: Server,
  secret: string | undefined,
  request: Parameters<ClientAuth>,
): void {
  const [{ token_endpoint_auth_methods_supported: supported = ['client_secret_basic'] }] = request
  const takesPost = type === 'oauth2' || supported.includes('client_secret_post')
  const method = chosen ?? (takesPost ? 'client_secret_post' : 'client_secret_basic')
  const withSecret = method === 'client_secret_post' ? ClientSecretPost : ClientSecretBasic
  const authenticate = secret === undefined ? None() : withSecret(secret)
  authenticate(...request)
}
