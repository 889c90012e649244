import type { Actor, Answer, TestService } from './harness.ts'

/** A caller that keeps and sends cookies. */
export function browser({ anon, config }: TestService, { token }: { readonly token: string }) {
  const jar = new Map([[config.session.cookie_name, token]])
  const headers = () => ({
    cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; '),
  })
  const keep = (answer: Answer): Answer => {
    for (const cookie of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      if (value === '') jar.delete(name)
      else jar.set(name, value)
    }
    return answer
  }
  const who: Actor = {
    headers: {},
    send: async (method, path, given) =>
      keep(await anon.send(method, path, { ...given, headers: headers() })),
    get: (path) => who.send('GET', path),
    post: (path, body = {}) => who.send('POST', path, { body }),
  }
  return { ...who, jar }
}
