import type { Numbers } from './json.ts'
import type { Connection } from './request.ts'

/** A token, which is sent as `Authorization: Bearer`, or headers that carry the session. Nothing: no session. */
export type Session = string | Readonly<Record<string, string>> | null | undefined

export type ClientOptions = {
  /** The address of the service: `https://api.example.com`. */
  readonly url: string
  /** The API key. That of a page is public: make it by `gatehouse keys create --browser`. */
  readonly key?: string
  /** Is called at each request, so that one client can serve many users. */
  readonly session?: () => Session | Promise<Session>
  /** The client of better-auth, in browsers only: requests then carry its cookie. */
  readonly auth?: { readonly getSession: (...args: never[]) => unknown }
  /** The client of the service, which is its database. */
  readonly client?: string
  readonly fetch?: typeof fetch
  /** `exact` keeps every digit: bigints and texts where a number would lose some. */
  readonly numbers?: Numbers
}

export function connect(options: ClientOptions): Connection {
  const { url, key, session, auth, client = 'default', numbers = 'number' } = options
  // Without the text: it may be the key.
  if (!/^https?:/i.test(url) || !URL.canParse(url))
    throw new TypeError('url is the address of the service: https://api.example.com')
  if (auth !== undefined) requireBrowser(session)
  const fixed = { 'x-service-client': client, ...(key !== undefined && { apikey: key }) }
  const send = options.fetch ?? globalThis.fetch
  const own = (): Headers | Promise<Headers> => {
    const given = session?.()
    return isThenable(given) ? Promise.resolve(given).then(headersOf) : headersOf(given)
  }
  // A page of the service's own origin would send its cookie by default: rows of a user whom nobody has named. Some servers refuse the member.
  const cookies: RequestInit = !('location' in globalThis)
    ? {}
    : { credentials: auth === undefined ? 'omit' : 'include' }
  return {
    url: url.replace(/\/+$/, ''),
    fixed,
    session: own,
    sendsCookies: auth !== undefined,
    headers: async () => ({ ...fixed, ...(await own()) }),
    // Not a method of this object: browsers refuse a fetch whose `this` is not the window.
    fetch: (input, init) => send(input, { ...init, ...cookies }),
    numbers,
  }
}

/** One cookie is one user, and a server renders for many: there the session of each request has to be named. */
function requireBrowser(session: unknown): void {
  if (session !== undefined) throw new TypeError('auth and session exclude each other')
  if (!('document' in globalThis))
    throw new Error(
      'auth works in browsers only. On a server, pass session: a function that gives the token of the request',
    )
}

type Headers = Readonly<Record<string, string>>

/** Promises of libraries and of other realms are no `Promise` of this one; without their session a request would be that of the key alone. */
const isThenable = (given: Session | PromiseLike<Session>): given is PromiseLike<Session> =>
  typeof given === 'object' && given !== null && typeof given.then === 'function'

const headersOf = (session: Session): Headers =>
  typeof session === 'string'
    ? { authorization: `Bearer ${session}` }
    : // A Headers of a request has no members of its own.
      session instanceof globalThis.Headers
      ? Object.fromEntries(session)
      : (session ?? {})
