import { createLocalJWKSet, type JWTVerifyGetKey } from 'jose'
import { type Configuration, fetchProtectedResource, fetchUserInfo } from 'openid-client'
import type { Kernel } from '#kernel/kernel.ts'
import {
  asClaims,
  type Claims,
  type Provider,
  type ProviderSettings,
  type Server,
  serverOf,
} from '../providers/provider.ts'
import { type Connection, createConnection } from './connection.ts'
import { createKeySet } from './id-token.ts'
import { createPublishedDocument } from './published-document.ts'
import { askProvider, createProviderRequests } from './requests.ts'

/** A configured provider, with what this process knows of it: its endpoints, its keys and the state of its circuit. */
export type ProviderClient = {
  readonly name: string
  readonly provider: Provider
  readonly settings: ProviderSettings
  readonly server: Server
  /** Throws PROVIDER_UNAVAILABLE when the provider does not tell its endpoints. */
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
  const connection = createConnection(kernel, { name, provider, settings, send })
  const connect = () => askProvider(kernel, { name }, 'PROVIDER_UNAVAILABLE', connection)
  const keys = createPublishedDocument(kernel, { name, subject: 'keys' }, async () => {
    const { jwks_uri = '' } = (await connect()).serverMetadata()
    const { status, body } = await send(jwks_uri, { headers: JSON_ONLY })
    if (status !== 200) throw new Error(`the answer of ${jwks_uri} has status ${status}`)
    // The library checks the shape.
    return createLocalJWKSet(JSON.parse(body.toString()))
  })
  return { name, provider, settings, server: serverOf(provider, settings), connect, keys: createKeySet(keys) }
}

/** The answer of the userinfo endpoint. `accountId` is compared with the `sub` of an OpenID Connect issuer. */
export async function describeUser(
  kernel: Kernel,
  client: ProviderClient,
  accessToken: string,
  accountId: string,
): Promise<Claims> {
  const connection = await client.connect()
  const { userinfo_endpoint = '' } = connection.serverMetadata()
  return askProvider(kernel, client, 'UNABLE_TO_GET_USER_INFO', async () =>
    client.server.type === 'oidc'
      ? fetchUserInfo(connection, accessToken, accountId)
      : asClaims(await fetchWithToken(connection, accessToken, userinfo_endpoint)),
  )
}

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
