import { createAuthClient } from 'better-auth/client'
import { createAuthClient as createAuthClient12 } from 'better-auth-1.2/client'
import type { Outcome, Version } from './clients.ts'
import { createCookieFetch } from './fetches.ts'

type Answer<T> = Promise<Outcome<T>>

export type Account = {
  readonly id: string
  /** 1.7 and 1.2. */
  readonly providerId?: string
  readonly provider?: string
  readonly accountId: string
  readonly scopes: string[]
}
type Visit = {
  readonly provider: 'google' | 'gitlab'
  readonly callbackURL?: string
  readonly errorCallbackURL?: string
  readonly disableRedirect?: boolean
  readonly idToken?: { readonly token: string; readonly nonce?: string }
}
type Tokens = {
  readonly accessToken?: string | undefined
  readonly accessTokenExpiresAt?: Date | undefined
}
type Info = {
  readonly user: { readonly email?: string | null | undefined; readonly emailVerified: boolean }
  readonly data: object
}

/** The calls of an application with social sign-in. Those whose arguments differ between the two versions have one form here. */
export type SocialVisitor = {
  signIn(visit: Visit): Answer<{ redirect: boolean; url?: string | null | undefined; token?: string | null }>
  link(visit: Visit): Answer<{ redirect: boolean; url?: string | undefined; status?: boolean | undefined }>
  session(): Answer<{ user: { email: string; emailVerified: boolean } } | null>
  accounts(): Answer<readonly Account[]>
  unlink(account: Account): Answer<{ status: boolean }>
  accessToken(account: Account): Answer<Tokens>
  refresh(account: Account): Answer<Tokens & { readonly refreshToken?: string | undefined }>
  info(account: Account): Answer<Info | null>
  /** Opens a page and follows redirects, as the browser does, until one leads to a path of this service outside its endpoints. */
  browse(url: string): Promise<string>
  /** All requests with their status: `POST /api/auth/sign-in/social 200`. */
  readonly calls: readonly string[]
}

export function newSocialVisitor(url: string, version: Version): SocialVisitor {
  const { fetch, calls } = createCookieFetch()
  const options = { baseURL: url, fetchOptions: { customFetchImpl: fetch } }
  const common = { calls, browse: (from: string) => browse(fetch, url, from) }
  if (version === '1.7.7') {
    const client = createAuthClient(options)
    return {
      ...common,
      signIn: (visit) => client.signIn.social(visit),
      link: (visit) => client.linkSocial(visit),
      session: () => client.getSession(),
      accounts: () => client.listAccounts(),
      unlink: ({ id: accountId }) => client.unlinkAccount({ accountId }),
      accessToken: ({ id: accountId }) => client.getAccessToken({ accountId }),
      refresh: ({ id: accountId }) => client.refreshToken({ accountId }),
      info: ({ id: accountId }) => client.accountInfo({ query: { accountId } }),
    }
  }
  const client = createAuthClient12(options)
  const rowOf = ({ provider: providerId = '', id: accountId }: Account) => ({ providerId, accountId })
  return {
    ...common,
    signIn: (visit) => client.signIn.social(visit),
    link: (visit) => client.linkSocial(visit),
    session: () => client.getSession(),
    accounts: () => client.listAccounts(),
    unlink: ({ provider: providerId = '', accountId }) => client.unlinkAccount({ providerId, accountId }),
    accessToken: (account) => client.getAccessToken(rowOf(account)),
    refresh: (account) => client.refreshToken(rowOf(account)),
    info: ({ accountId }) => client.accountInfo({ accountId }),
  }
}

async function browse(fetch: typeof globalThis.fetch, service: string, from: string): Promise<string> {
  let url = from
  for (let hop = 0; hop < 12; hop++) {
    const response = await fetch(url, { redirect: 'manual' })
    const location = response.headers.get('location')
    if (location === null)
      throw new Error(`${url} has status ${response.status} and no redirect: ${await response.text()}`)
    url = new URL(location, url).href
    if (url.startsWith(service) && !url.startsWith(`${service}/api/auth/`)) return url.slice(service.length)
  }
  throw new Error(`too many redirects; the last one leads to ${url}`)
}
