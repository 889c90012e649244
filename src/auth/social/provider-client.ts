import { createLocalJWKSet, type JWTVerifyGetKey } from 'jose'
import { type Configuration, fetchProtectedResource } from 'openid-client'
import type { Kernel } from '#kernel/kernel.ts'
import { authUrl } from '../auth-url.ts'
import { askProvider } from './ask-provider.ts'
import { type Connection, createConnection } from './connection.ts'
import { createKeySet } from './id-token.ts'
import type { Provider, ProviderSettings, Server } from './provider.ts'
import { createDocumentReader } from './provider-document.ts'
import { createProviderRequests } from './provider-requests.ts'

/** A configured provider, with what this process knows of it: its endpoints, its keys and the state of its circuit. */
export type ProviderClient = {
  readonly name: string
  readonly provider: Provider
  readonly settings: ProviderSettings
  readonly server: Server
  readonly connect: Connection
  /** The keys of an OpenID Connect issuer. */
  readonly keys: JWTVerifyGetKey
}

/** The parts of the kernel that requests to providers use. */
export type ProviderKernel = Pick<Kernel, 'config' | 'log' | 'now' | 'outbound'>

export function createProviderClient(
  kernel: ProviderKernel,
  name: string,
  provider: Provider,
  settings: ProviderSettings,
): ProviderClient {
  const send = createProviderRequests(kernel, name)
  const connect = createConnection(kernel, { name, provider, settings, send })
  const readKeys = createDocumentReader(kernel, { name, subject: 'keys' }, async () => {
    const { jwks_uri = '' } = (await connect()).serverMetadata()
    const { status, body } = await send(jwks_uri, { headers: JSON_ONLY })
    if (status !== 200) throw new Error(`the answer of ${jwks_uri} has status ${status}`)
    // The library checks the shape.
    return createLocalJWKSet(JSON.parse(body.toString()))
  })
  const keys = createKeySet(kernel, readKeys)
  return { name, provider, settings, server: provider.server(settings), connect, keys }
}

/** To be registered at the provider. */
export const redirectUri = (
  kernel: Pick<Kernel, 'config' | 'publicUrl'>,
  { name }: Pick<ProviderClient, 'name'>,
): string => authUrl(kernel, `/callback/${name}`)

/** Throws PROVIDER_UNAVAILABLE when the provider does not tell its endpoints. */
export const connectTo = (kernel: Kernel, client: ProviderClient): Promise<Configuration> =>
  askProvider(kernel, client, 'PROVIDER_UNAVAILABLE', client.connect)

/** Asks an endpoint with an access token. */
export async function fetchWithToken(
  connection: Configuration,
  token: string,
  url: string,
): Promise<unknown> {
  const headers = new Headers(JSON_ONLY)
  const answer = await fetchProtectedResource(connection, token, new URL(url), 'GET', undefined, headers)
  if (!answer.ok) throw new Error(`the answer of ${url} has status ${answer.status}`)
  return answer.json()
}

const JSON_ONLY = { accept: 'application/json' }
