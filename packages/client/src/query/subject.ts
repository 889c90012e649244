import type { Connection } from '../request.ts'

/** Claims that each token has anew. */
const OF_ONE_TOKEN = new Set(['exp', 'iat', 'nbf', 'jti'])

/**
 * Says who is calling, without the secret that proves it: keys of caches are stored and shown. `given` names the user of a session that cannot
 * be seen from here.
 */
export function subjectOf({ fixed, session, sendsCookies }: Connection, given?: string): string {
  const { apikey = '', ...others } = fixed
  const key = /^svc_([^.]+)\./.exec(apikey)?.[1] ?? digest(apikey)
  return [key, given ?? userOf(session(), sendsCookies), digest(JSON.stringify(others))].join('/')
}

function userOf(headers: ReturnType<Connection['session']>, sendsCookies: boolean): string {
  if (sendsCookies) throw unknown('the session is a cookie')
  if (headers instanceof Promise) {
    // The request asks for it again.
    headers.catch(() => {})
    throw unknown('session is an async function')
  }
  const { authorization, ...others } = headers
  if (authorization === undefined)
    return Object.keys(others).length === 0 ? '' : digest(JSON.stringify(others))
  return callerOf(authorization.replace(/^Bearer /i, ''))
}

const unknown = (why: string): TypeError =>
  new TypeError(
    `queryOptions cannot tell whose rows they are, since ${why}: pass { subject: 'id of the user' }`,
  )

/** Rows depend on the claims of a token; another token of the same session has the same ones. */
function callerOf(token: string): string {
  const claims = claimsOf(token)
  if (claims === undefined) return digest(token)
  const lasting = Object.entries(claims).filter(([name]) => !OF_ONE_TOKEN.has(name))
  return `${claims.sub ?? ''}~${digest(JSON.stringify(lasting.sort()))}`
}

/** Undefined for a token that is no JWT. */
function claimsOf(token: string): Readonly<Record<string, unknown>> | undefined {
  const [, payload = ''] = token.split('.')
  try {
    const bytes = Uint8Array.from(atob(payload.replace(/-/g, '+').replace(/_/g, '/')), (one) =>
      one.charCodeAt(0),
    )
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes))
    return typeof claims === 'object' && claims !== null ? { ...claims } : undefined
  } catch {
    return undefined
  }
}

/** 53 bits of a text (cyrb53): too few to find a secret by, enough to tell callers apart. */
function digest(text: string): string {
  let [one, other] = [0xdeadbeef, 0x41c6ce57]
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    one = Math.imul(one ^ unit, 2654435761)
    other = Math.imul(other ^ unit, 1597334677)
  }
  one = Math.imul(one ^ (one >>> 16), 2246822507) ^ Math.imul(other ^ (other >>> 13), 3266489909)
  other = Math.imul(other ^ (other >>> 16), 2246822507) ^ Math.imul(one ^ (one >>> 13), 3266489909)
  return (4294967296 * (2097151 & other) + (one >>> 0)).toString(36)
}
