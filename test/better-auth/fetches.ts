type Fetch = typeof globalThis.fetch

/** A `fetch`, and a list of the requests it has sent: `POST /api/auth/sign-in/email 200`. */
export type RecordingFetch = { readonly fetch: Fetch; readonly calls: readonly string[] }

export const createPlainFetch = (): RecordingFetch => recordRequests((request) => globalThis.fetch(request))

/** A `fetch` with a cookie jar, like a browser. */
export function createCookieFetch(): RecordingFetch {
  const jar = new Map<string, string>()
  return recordRequests(async (request) => {
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

function recordRequests(send: (request: Request) => Promise<Response>): RecordingFetch {
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
