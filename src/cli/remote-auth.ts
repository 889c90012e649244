import { createDirectRequests } from '#kernel/http/outbound/outbound.ts'
import { VERSION } from '#kernel/version.ts'
import { WrongUsage } from './wrong-usage.ts'

/** The authentication surface of a service that runs elsewhere. */
export type RemoteAuth = {
  ask(method: 'GET' | 'POST', path: string, asked?: Asked): Promise<ServiceAnswer>
}

type Asked = { readonly token?: string; readonly body?: object }

/** `body`: an empty object when it is no JSON object. */
type ServiceAnswer = { readonly status: number; readonly body: Readonly<Record<string, unknown>> }

/** The service did not answer, or is not ready to. */
export class Unreachable extends Error {}

/** Milliseconds. */
const TIMES = { connectTimeout: 10_000, idleTimeout: 5_000 }
const TIMEOUT = 30_000
const MAX_BYTES = 1_000_000

/** Runs the work with a connection to the service. No redirect is followed, so the token goes nowhere else. */
export async function withRemoteAuth<T>(authUrl: string, work: (auth: RemoteAuth) => Promise<T>): Promise<T> {
  const requests = createDirectRequests(TIMES)
  const ask: RemoteAuth['ask'] = async (method, path, { token, body } = {}) => {
    const headers = {
      ...{ accept: 'application/json', 'user-agent': `gatehouse/${VERSION}` },
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const asked = { method, headers, timeout: TIMEOUT, maxBytes: MAX_BYTES }
    try {
      const answer = await requests.send(`${authUrl}${path}`, {
        ...asked,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      if (answer.status >= 500) throw new Error(`status ${answer.status}`)
      return { status: answer.status, body: objectIn(answer.body) }
    } catch (error) {
      throw new Unreachable(`${new URL(authUrl).origin} cannot be reached: ${reasonOf(error)}.`)
    }
  }
  try {
    return await work({ ask })
  } finally {
    await requests.close()
  }
}

function objectIn(body: Buffer): ServiceAnswer['body'] {
  try {
    const parsed: unknown = JSON.parse(body.toString('utf8'))
    return typeof parsed === 'object' && parsed !== null ? (parsed as ServiceAnswer['body']) : {}
  } catch {
    return {}
  }
}

/** An error of several addresses has no message of its own. */
const reasonOf = (error: unknown): string => {
  const { message = '', code } = Object(error) as { message?: string; code?: string } // whatever was thrown
  return message === '' ? (code ?? 'no answer') : message
}

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/** The address of a service as typed, in one spelling. */
export function serviceAddress(typed: string): string {
  const url = URL.parse(typed)
  if (url === null || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`)
    throw new WrongUsage(`${typed} is not the address of a service, like https://api.example.com.`)
  if (url.protocol === 'http:' && !LOOPBACK.test(url.hostname))
    throw new WrongUsage(`${typed}: a session is sent over https only, except to this machine.`)
  return url.origin
}
