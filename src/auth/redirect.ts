import type { FastifyReply } from 'fastify'
import { Failure } from '#kernel/errors.ts'

/** Adds to the query of a redirect target, which has the form of `redirectTarget`. */
export function withQuery(target: string, query: Readonly<Record<string, string>>): string {
  const isPath = target.startsWith('/')
  const url = new URL(target, 'http://own.invalid')
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return isPath ? `${url.pathname}${url.search}${url.hash}` : url.href
}

type Work<T> = () => Promise<{ readonly answer: T; readonly query?: Readonly<Record<string, string>> }>

/**
 * Answers the endpoint of a link that acts. With a callback the browser is redirected there, after a failure with `?error=CODE`;
 * without one the result is the answer. A HEAD request does nothing.
 */
export function followLink<T>(
  reply: FastifyReply,
  callbackURL: string | undefined,
  work: Work<T>,
): Promise<T> | T {
  return reply.request.method === 'HEAD' ? asAnswer(reply.send()) : answerOrRedirect(reply, callbackURL, work)
}

/** The same for a link that changes nothing. */
export async function answerOrRedirect<T>(
  reply: FastifyReply,
  callbackURL: string | undefined,
  work: Work<T>,
): Promise<T> {
  if (callbackURL === undefined) return (await work()).answer
  try {
    const { query = {} } = await work()
    return redirected(reply, withQuery(callbackURL, query))
  } catch (error) {
    if (!(error instanceof Failure) || error.status >= 500) throw error
    return redirected(reply, withQuery(callbackURL, { error: error.code }))
  }
}

const redirected = <T>(reply: FastifyReply, target: string): T => asAnswer(reply.redirect(target, 302))

/** A handler may return its reply once it is sent; Fastify's types allow that for untyped routes only. */
export const asAnswer = <T>(reply: FastifyReply): T => reply as unknown as T
