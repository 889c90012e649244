import { getEndpoints } from 'better-auth/api'
import { username } from 'better-auth/plugins/username'
import { getEndpoints as getEndpoints12 } from 'better-auth-1.2/api'
import { username as username12 } from 'better-auth-1.2/plugins/username'
import type { Version } from './clients.ts'

/** Endpoints of better-auth's own server that Gatehouse does not have, and why. */
export const NOT_BUILT: Readonly<Record<string, string>> = {
  '/update-session': 'sessions have no custom fields',
}

/** Endpoints that another file of this folder drives. */
export const SOCIAL = [
  '/sign-in/social',
  '/link-social',
  '/refresh-token',
  '/get-access-token',
  '/account-info',
]

/** The parts of a better-auth endpoint that this file uses. */
export type Endpoint = {
  readonly path?: string
  readonly options: {
    readonly method: unknown
    readonly metadata?: {
      readonly SERVER_ONLY?: boolean
      readonly isAction?: boolean
      readonly scope?: string
    }
  }
}

/** Paths of better-auth's own server that a client of this version with the username plugin can call. */
export function clientPaths(version: Version): string[] {
  // The context is used only when an endpoint runs.
  const context = new Promise<never>(() => {})
  const { api } =
    version === '1.7.7'
      ? getEndpoints(context, { plugins: [username()] })
      : getEndpoints12(context, { plugins: [username12()] })
  const endpoints: Endpoint[] = Object.values(api)
  return [...new Set(endpoints.filter(isForClients).flatMap(({ path = [] }) => path))]
}

export function isForClients({ options: { metadata = {} } }: Endpoint): boolean {
  const { SERVER_ONLY = false, isAction = true, scope } = metadata
  return !SERVER_ONLY && isAction && scope !== 'server'
}
