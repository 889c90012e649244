type Fetch = typeof globalThis.fetch

/** A `fetch` that records its requests: `POST /api/auth/sign-in/email 200`. */
export type Watched = { readonly fetch: Fetch; readonly calls: readonly string[] }

export const plainFetch = (): Watched => watched((request) => globalThis.fetch(request))

/** A `fetch` with a cookie jar, like a browser. */
export function createCookieFetch(): Watched {
  const jar = new Map<string, string>()
  return watched(async (request) => {
    if (jar.size > 0) {
      request.headers.set('cookie', [...jar].map(([name, value]) => `${name}=${value}`).join('; '))
    }
    const response = await globalThis.fetch(request)
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      if (value === '') jar.delete(name)
      else jar.set(name, value)
    }
    return response
  })
}

function watched(send: (request: Request) => Promise<Response>): Watched {
  const calls: string[] = []
  return {
    calls,
    async fetch(input, init) {
      const request = new Request(input, init)
      const response = await send(request)
      calls.push(`${request.method} ${new URL(request.url).pathname} ${response.status}`)
      return response
    },
  }
}
