import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createAuthClient } from 'better-auth/client'
import { usernameClient } from 'better-auth/client/plugins'
import { createAuthClient as createAuthClient12 } from 'better-auth-1.2/client'
import { usernameClient as usernameClient12 } from 'better-auth-1.2/client/plugins'
import { FORM, formIn, PASSWORD } from '#test/harness.ts'
import { createCookieFetch, createPlainFetch } from './fetches.ts'

/** The result of a call. The clients do not throw. */
export type Outcome<T> =
  | { readonly data: T; readonly error: null }
  | { readonly data: null; readonly error: Refusal }
export type Refusal = {
  readonly status: number
  readonly code?: string | undefined
  readonly message?: string | undefined
}
type Answer<T> = Promise<Outcome<T>>

type User = {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly emailVerified: boolean
  readonly image?: string | null | undefined
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly username?: string | null | undefined
  readonly displayUsername?: string | null | undefined
}
type Session = {
  readonly id: string
  readonly token: string
  readonly userId: string
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly expiresAt: Date
  readonly ipAddress?: string | null | undefined
  readonly userAgent?: string | null | undefined
}
type Known = { readonly session: Session; readonly user: User }
/** The state of an application's `useSession`. */
type HookState = { readonly data: Known | null; readonly error: Refusal | null; readonly isPending: boolean }
type Account = {
  readonly id: string
  readonly provider?: string
  readonly providerId?: string
  readonly accountId: string
  readonly scopes: string[]
  readonly createdAt: Date
  readonly updatedAt: Date
}

/**
 * The calls of applications. The compiler checks below that the types of both versions match. Calls that have different names in the two
 * versions have one name here.
 */
type Calls = {
  readonly signUp: {
    email(body: {
      name: string
      email: string
      password: string
      username?: string
    }): Answer<{ token: string | null; user: User }>
  }
  readonly signIn: {
    email(body: {
      email: string
      password: string
      callbackURL?: string
      rememberMe?: boolean
    }): Answer<{ redirect: boolean; token: string; url?: string | null | undefined; user: User }>
    username(body: {
      username: string
      password: string
      callbackURL?: string
    }): Answer<{ token: string; user: User } | null>
  }
  signOut(): Answer<{ success: boolean }>
  getSession(asked?: {
    query?: { disableCookieCache?: boolean }
    fetchOptions?: { headers: { cookie: string } }
  }): Answer<Known | null>
  readonly useSession: { get(): HookState }
  listSessions(): Answer<Session[]>
  revokeSession(body: { token: string }): Answer<{ status: boolean }>
  revokeOtherSessions(): Answer<{ status: boolean }>
  revokeSessions(): Answer<{ status: boolean }>
  sendVerificationEmail(body: { email: string; callbackURL?: string }): Answer<{ status: boolean }>
  // biome-ignore lint/suspicious/noConfusingVoidType: as in the clients' types, because the response may be a redirect
  verifyEmail(asked: { query: { token: string } }): Answer<{ status: boolean; user?: unknown } | void>
  changeEmail(body: { newEmail: string; callbackURL?: string }): Answer<{ status: boolean }>
  changePassword(body: {
    currentPassword: string
    newPassword: string
    revokeOtherSessions?: boolean
  }): Answer<{ token: string | null; user: User }>
  requestPasswordReset(body: {
    email: string
    redirectTo?: string
  }): Answer<{ status: boolean; message?: string }>
  resetPassword(body: { newPassword: string; token: string }): Answer<{ status: boolean }>
  updateUser(body: { name?: string; image?: string; username?: string }): Answer<{ status: boolean }>
  listAccounts(): Answer<Account[]>
  readonly deleteUser: {
    (body?: { password?: string; token?: string }): Answer<{ success: boolean; message: string }>
    callback(asked: { query: { token: string } }): Answer<{ success: boolean; message: string }>
  }
}

export type Visitor = {
  readonly client: Calls
  /** 1.2's name for `requestPasswordReset`, with a different path. */
  forgetPassword(body: { email: string; redirectTo?: string }): Answer<{ status: boolean }>
  isUsernameAvailable(body: { username: string }): Answer<{ available: boolean } | null>
  unlinkAccount(account: Account): Answer<{ status: boolean }>
  /** Refetches the session, as pages do, and returns the state of the hook. */
  useSession(): Promise<HookState>
  /** Opens a path of the service, like a link in a mail, without following redirects. */
  follow(path: string): Promise<Response>
  /** Opens the page of a link, fills in its form and submits it. */
  confirm(path: string, filled?: Readonly<Record<string, string>>): Promise<Response>
  /** All requests with their status: `POST /api/auth/sign-in/email 200`. */
  readonly calls: readonly string[]
}

export const VERSIONS = ['1.7.7', '1.2.12'] as const
export const CARRIERS = ['cookie', 'Bearer'] as const
export type Version = (typeof VERSIONS)[number]
export type Carrier = (typeof CARRIERS)[number]

const newClient = (options: object) => createAuthClient({ ...options, plugins: [usernameClient()] })
const newClient12 = (options: object) => createAuthClient12({ ...options, plugins: [usernameClient12()] })

/** Failure codes that exist in the types of both versions. */
export type KnownCode = keyof ReturnType<typeof newClient>['$ERROR_CODES'] &
  keyof ReturnType<typeof newClient12>['$ERROR_CODES']

/** A visitor with its own client, configured as in an application. */
export function newVisitor(url: string, version: Version, by: Carrier): Visitor {
  const { fetch, calls } = by === 'cookie' ? createCookieFetch() : createPlainFetch()
  const options = { baseURL: url, fetchOptions: { customFetchImpl: fetch, ...(by === 'Bearer' && bearer()) } }
  const shown = async ({ useSession }: Calls): Promise<HookState> => {
    // In a page the hook refetches by itself. The types of 1.2 omit these two members.
    const now = () => useSession.get() as HookState & { refetch(): Promise<unknown>; isRefetching: boolean }
    // 1.7 refetches 10 ms after a sign-out, and drops the response of a pending fetch.
    do await now().refetch()
    while (now().isRefetching)
    return now()
  }
  const follow = (path: string) => fetch(`${url}${path}`, { redirect: 'manual' })
  const confirm = async (path: string, filled: Readonly<Record<string, string>> = {}) => {
    const body = formIn(await (await follow(path)).text(), filled)
    const page = new URL(path, url)
    return fetch(`${page.origin}${page.pathname}`, {
      method: 'POST',
      redirect: 'manual',
      headers: FORM,
      body,
    })
  }
  const common = { calls, follow, confirm }
  if (version === '1.7.7') {
    const client = newClient(options)
    return {
      ...common,
      client,
      useSession: () => shown(client),
      forgetPassword: client.requestPasswordReset,
      isUsernameAvailable: client.isUsernameAvailable,
      unlinkAccount: ({ id }) => client.unlinkAccount({ accountId: id }),
    }
  }
  const client = newClient12(options)
  return {
    ...common,
    client,
    useSession: () => shown(client),
    forgetPassword: client.forgetPassword,
    // The types of 1.2 do not have this path.
    isUsernameAvailable: (body) => client.$fetch('/is-username-available', { method: 'POST', body }),
    unlinkAccount: ({ provider = '', accountId }) =>
      client.unlinkAccount({ providerId: provider, accountId }),
  }
}

/** Stores the token of `set-auth-token` and sends it. Uses `onResponse`, because 1.2 overrides `onSuccess`. */
export function bearer() {
  let token = ''
  return {
    auth: { type: 'Bearer', token: () => token },
    onResponse: ({ response }: { response: Response }) => {
      token = response.headers.get('set-auth-token') ?? token
    },
  } as const
}

/** Returns the data, and fails on an error. */
export function done<T>({ data, error }: Outcome<T>): T {
  assert.equal(error, null)
  // There is data if there is no error.
  return data as T
}

export function refused({ data, error }: Outcome<unknown>): Refusal {
  assert.equal(data, null)
  assert.ok(error?.message)
  return error
}

export function newUser() {
  const username = `Ada_${randomUUID().slice(0, 8)}`
  return {
    name: 'Ada Lovelace',
    email: `${username.toLowerCase()}@example.com`,
    password: PASSWORD,
    username,
  }
}
