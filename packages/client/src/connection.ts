import { isObject, type Numbers } from './json.ts'
import type { Connection } from './request.ts'

/** A token, which is sent as `Authorization: Bearer`, or the headers that carry the session, also those of a request. Null: no session. */
export type Session = string | Headers | SessionHeaders | null | undefined
type SessionHeaders = { readonly authorization?: string | undefined; readonly cookie?: string | undefined }

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
  if (!/^https?:\/\/[^/]/i.test(url)) throw new TypeError('url is the address of the service: https://…')
  if (auth !== undefined && session !== undefined) throw new TypeError('auth and session exclude each other')
  // One cookie is one user, and a server renders for many: there the session of each request has to be named.
  if (auth !== undefined && !('document' in globalThis))
    throw new Error('auth is for browsers. On a server, pass session')
  const fixed = { 'x-service-client': client, ...(key !== undefined && { apikey: key }) }
  const send = options.fetch ?? globalThis.fetch
  const own = (): Sent | Promise<Sent> => {
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

type Sent = Readonly<Record<string, string>>

/** Promises of libraries and of other realms are no `Promise` of this one; without their session a request would be that of the key alone. */
const isThenable = (given: Session | PromiseLike<Session>): given is PromiseLike<Session> =>
  isObject(given) && 'then' in given

/** Of a header, as `name: value`. Others of a request that a server passes on are its length, or an API key of the visitor. */
const CARRIES_SESSION = /^(authorization: *(bearer +\S|$)|cookie:|x-service-(session|auth-.+?):)/i

/** Without what the service takes for a session, a request would be that of the key alone, which may see more. */
function headersOf(session: Session): Sent {
  if (!session) return {}
  if (typeof session === 'string') return { authorization: `Bearer ${session}` }
  // Those of a visitor may have none.
  const isOfRequest = 'get' in session
  const carried = (isOfRequest ? [...session] : Object.entries(session)).filter(([name, value]) =>
    CARRIES_SESSION.test(`${name}: ${value ?? ''}`),
  )
  if (carried.length === 0 && !isOfRequest)
    throw new TypeError('session gives a token, headers with a Bearer token or a cookie, or null')
  return Object.fromEntries(carried.flatMap(([name, value]) => (value ? [[name.toLowerCase(), value]] : [])))
}
