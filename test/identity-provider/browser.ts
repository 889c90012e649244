/** Requests of one browser: it keeps the cookies of each host and follows redirects. */
export type Browser = {
  /** One request. Cookies are sent and stored; no redirect is followed. */
  send(url: string, init?: RequestInit): Promise<Response>
  /** Follows redirects until one leads to a URL that begins with `until`, and returns that URL. */
  followTo(url: string, until: string): Promise<string>
  cookie(name: string): string | undefined
  setCookie(name: string, value: string | undefined): void
}

/** Cookies are not bound to a path, and `Secure` is ignored on loopback. Ports share them, as in browsers. */
export function createBrowser(): Browser {
  const jar = new Map<string, string>()
  const store = (header: string) => {
    const [pair = '', ...attributes] = header.split('; ')
    const [name = ''] = pair.split('=', 1)
    const isOver = attributes.some((text) => /^(max-age=0|expires=thu, 01 jan 1970)/i.test(text))
    if (isOver) jar.delete(name)
    else jar.set(name, pair.slice(name.length + 1))
  }
  const send: Browser['send'] = async (url, init = {}) => {
    const headers = new Headers(init.headers)
    if (jar.size > 0) headers.set('cookie', [...jar].map(([name, value]) => `${name}=${value}`).join('; '))
    const response = await fetch(url, { ...init, headers, redirect: 'manual' })
    for (const header of response.headers.getSetCookie()) store(header)
    return response
  }
  return {
    send,
    async followTo(url, until) {
      for (let hop = 0; hop < 12; hop++) {
        const response = await send(url)
        const location = response.headers.get('location')
        if (location === null)
          throw new Error(`${url} has status ${response.status} and no redirect: ${await response.text()}`)
        url = new URL(location, url).href
        if (url.startsWith(until)) return url
      }
      throw new Error(`too many redirects; the last one leads to ${url}`)
    },
    cookie: (name) => jar.get(name),
    setCookie(name, value) {
      if (value === undefined) jar.delete(name)
      else jar.set(name, value)
    },
  }
}
