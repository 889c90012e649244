import type { JWTVerifyGetKey } from 'jose'
import { AuthorizationResponseError, type Configuration, fetchProtectedResource } from 'openid-client'
import { Failure } from '#kernel/errors.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { authUrl } from '../auth-url.ts'
import { fail } from '../errors.ts'
import { type Connection, createConnection } from './connection.ts'
import { createKeySet } from './id-token.ts'
import type { Provider, ProviderSettings, Server } from './provider.ts'
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
  const connect = createConnection(kernel, { provider, settings, send })
  const keys = createKeySet(kernel, () =>
    askProvider(kernel, { name }, 'PROVIDER_UNAVAILABLE', async () => {
      const { jwks_uri = '' } = (await connect()).serverMetadata()
      const { status, body } = await send(jwks_uri, { headers: JSON_ONLY })
      if (status !== 200) throw new Error(`the answer of ${jwks_uri} has status ${status}`)
      return JSON.parse(body.toString())
    }),
  )
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

/** Every failure of the provider, or of a library that checks its answers, becomes this one; the log has the reason. */
export async function askProvider<T>(
  { log }: Pick<Kernel, 'log'>,
  { name }: Pick<ProviderClient, 'name'>,
  code:
    | 'INVALID_CODE'
    | 'UNABLE_TO_GET_USER_INFO'
    | 'PROVIDER_UNAVAILABLE'
    | 'FAILED_TO_REFRESH_ACCESS_TOKEN',
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const own = ownFailure(error)
    if (own !== undefined) throw own
    if (error instanceof AuthorizationResponseError)
      throw fail('PROVIDER_REFUSED', { details: { error: error.error } })
    log.warn({ event: 'provider_failed', provider: name, error }, 'the answer of the provider is refused')
    throw fail(code, { cause: error })
  }
}

/** The library wraps a failure of ours, like that of an open circuit. */
function ownFailure(error: unknown): Failure | undefined {
  if (error instanceof Failure) return error
  return error instanceof Error && error.cause instanceof Failure ? error.cause : undefined
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
