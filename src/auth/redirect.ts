import type { FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '#kernel/errors.ts'

/** Adds to the query of a redirect target, which has the form of `redirectTarget`. */
export function withQuery(target: string, query: Readonly<Record<string, string | undefined>>): string {
  const isPath = target.startsWith('/')
  const url = new URL(target, 'http://own.invalid')
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) url.searchParams.set(name, value)
  return isPath ? `${url.pathname}${url.search}${url.hash}` : url.href
}

/** Where the browser is redirected to. */
type Targets = {
  readonly callbackURL?: string | undefined
  /** After a failure; `callbackURL` if absent. */
  readonly errorCallbackURL?: string | undefined
}

/** Members of the query that the route lists in `redirects`. The surface has judged those and no others, and a query may have more. */
function targetsOf({ query, routeOptions }: FastifyRequest): Targets {
  const { redirects = [] } = routeOptions.config
  const given = query as Readonly<Record<string, string | undefined>> // judged: texts
  return Object.fromEntries(redirects.map((name) => [name, given[name]]))
}

type Work<T> = () => Promise<{
  readonly answer: T
  /** Added to the target. */
  readonly query?: Readonly<Record<string, string>>
  /** In place of `callbackURL`. */
  readonly redirectTo?: string | undefined
}>

/**
 * Answers the endpoint of a link that acts. With a callback the browser is redirected there, after a failure with `?error=CODE`;
 * without one the result is the answer. A HEAD request does nothing.
 */
export function followLink<T>(reply: FastifyReply, work: Work<T>): Promise<T> | T {
  return reply.request.method === 'HEAD' ? asAnswer(reply.send()) : answerOrRedirect(reply, work)
}

/** The same for a link that changes nothing. */
export async function answerOrRedirect<T>(reply: FastifyReply, work: Work<T>): Promise<T> {
  const { callbackURL, errorCallbackURL = callbackURL } = targetsOf(reply.request)
  try {
    const { answer, query = {}, redirectTo = callbackURL } = await work()
    return redirectTo === undefined ? answer : redirected(reply, withQuery(redirectTo, query))
  } catch (error) {
    const isExpected = error instanceof Failure && error.status < 500
    if (!isExpected || errorCallbackURL === undefined) throw error
    return redirected(reply, withQuery(errorCallbackURL, { error: error.code }))
  }
}

const redirected = <T>(reply: FastifyReply, target: string): T => asAnswer(reply.redirect(target, 302))

/** A handler may return its reply once it is sent; Fastify's types allow that for untyped routes only. */
export const asAnswer = <T>(reply: FastifyReply): T => reply as unknown as T
