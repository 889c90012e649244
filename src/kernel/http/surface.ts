import type { FastifyContextConfig, FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { Origin } from '../audit/origin.ts'
import { Failure, type FailureTable } from '../errors.ts'
import { type Kernel, type OperatorSession, withOrigin } from '../kernel.ts'
import { refuseUnacceptable } from './accept.ts'
import { type Access, open } from './access.ts'
import type { App } from './app.ts'
import { readJsonBodies } from './bodies/body.ts'
import { type BodyRules, createValidatorCompiler } from './bodies/validate.ts'
import type { Feature } from './document/operations.ts'
import { edge } from './failures.ts'
import type { RouteBook } from './routes.ts'

export type { App }

type SurfaceOptions = BodyRules & {
  readonly name: 'auth' | 'gateway'
  readonly envelope: Envelope
  /** Every code that the surface answers. */
  readonly codes: FailureTable
  /** Parses JSON bodies. */
  readonly parse: (text: string) => unknown
  /** For the audit trail. */
  originOf(request: FastifyRequest): Origin
  /** The session that operates, if the request has one. */
  readonly operatorOf?: (request: FastifyRequest) => OperatorSession | undefined
}

/** The body of a failure. The request may have ended before Fastify saw it. */
type Envelope = (
  failure: Failure,
  request: {
    readonly id: string
    readonly routeOptions: { readonly url?: string | undefined; readonly config: FastifyContextConfig }
  },
) => object

declare module 'fastify' {
  interface FastifyContextConfig {
    /** That of the surface. */
    envelope?: Envelope
  }
  interface FastifyRequest {
    /** The kernel for the verb that the request asks for: what it writes has the request's origin (`originOf` of the surface). */
    readonly kernel: Kernel
  }
}

/** Sets the envelope of a surface, its validation and its answers for unknown paths. */
export function configureSurface(app: App, kernel: Kernel, book: RouteBook, options: SurfaceOptions): void {
  const answer = (request: FastifyRequest, reply: FastifyReply, failure: Failure) => {
    if (failure.status === 503) reply.header('retry-after', '1')
    if (failure.headers !== undefined) reply.headers(failure.headers)
    // No response schema of the route applies to the envelope.
    return reply
      .code(failure.status)
      .type('application/json; charset=utf-8')
      .serializer(JSON.stringify)
      .send(options.envelope(failure, request))
  }
  app.decorateRequest('kernel', {
    getter() {
      const operator = options.operatorOf?.(this)
      return { ...withOrigin(kernel, options.originOf(this)), ...(operator && { operator }) }
    },
  })
  app.addHook('onRoute', (route) => {
    const { access } = route.config ?? {}
    const mayBeHidden = access !== undefined && route.url.includes(':')
    route.config = {
      ...route.config,
      surface: options.name,
      codes: options.codes,
      envelope: options.envelope,
      ...(mayBeHidden && { access: hiddenByFixed(access) }),
    }
  })
  refuseUnacceptable(app)
  readJsonBodies(app, options.parse)
  app.setValidatorCompiler(createValidatorCompiler(options))
  app.setErrorHandler((error, request, reply) => {
    kernel.disk.noteFailure(error)
    const failure = failureOf(error)
    // Refusals of a busy service have no cause. They are in the metrics; log lines would add load.
    if (failure.status >= 500 && failure.cause !== undefined) {
      kernel.log.error(
        { event: 'request_failed', request_id: request.id, error: failure.cause },
        failure.message,
      )
    }
    return answer(request, reply, failure)
  })
  const absence = (request: FastifyRequest): Failure => {
    const allowed = book.methodsAt(request.url)
    const why = isPreflight(request) ? FOREIGN_ORIGIN : {}
    if (allowed.length === 0) return edge('not_found', why)
    const allow = allowed.join(', ')
    return edge('method_not_allowed', { hint: `It takes ${allow}`, ...why, headers: { allow } })
  }
  /** `DELETE /admin/webhooks/events` is not about a webhook named events. */
  const hiddenByFixed = (access: Access): Access => ({
    ...access,
    authorize(request, reply) {
      if (book.isFixed(request.url)) throw absence(request)
      return access.authorize(request, reply)
    },
  })
  // In a context of its own, so that other requests have no hook more.
  app.register(async (absent: App) => {
    absent.setNotFoundHandler((request, reply) => answer(request, reply, absence(request)))
    // Before the body is parsed: a QUERY without a content type would else be answered with 415.
    absent.addHook('preParsing', (request, _reply, _payload, done) => done(absence(request)))
  })
  // Otherwise the CORS plugin handles every OPTIONS on the surface without a prefix, with the envelope of that surface.
  if (app.prefix !== '')
    app.route({
      method: 'OPTIONS',
      url: '/*',
      config: { access: open },
      handler: (_request, reply) => reply.callNotFound(),
    })
}

/** A preflight of an origin that is not trusted; the CORS plugin answers the others. */
const isPreflight = ({ method, headers }: FastifyRequest): boolean =>
  method === 'OPTIONS' &&
  headers.origin !== undefined &&
  headers['access-control-request-method'] !== undefined

const FOREIGN_ORIGIN = {
  message:
    'Pages of this origin may not call the service: its operator has not listed it in auth.trusted_origins',
  hint: 'Add the origin to auth.trusted_origins (SERVICE_AUTH__TRUSTED_ORIGINS)',
}

/** Adds the routes of one feature, which is their tag in the API reference. */
export function addFeature(app: App, feature: Feature, addRoutes: (app: App) => void): void {
  const add = async (part: App) => {
    part.addHook('onRoute', (route) => {
      route.config = { ...route.config, feature }
    })
    addRoutes(part)
  }
  // Without a name Fastify would look for one among all loaded modules.
  app.register(Object.assign(add, { [Symbol.for('fastify.display-name')]: feature.name }))
}

/**
 * Temporary errors of PostgreSQL and sockets: 08 connection, 25006 a primary that has become a standby, 25P03 a
 * transaction that waited for too long, 53 resources, 55P03 a lock, 57014 too slow, 57P shutdown, 58 the disk.
 */
const UNAVAILABLE =
  /^(08...|25006|25P03|53...|55P03|57014|57P0[1-5]|58030|ECONNREFUSED|ECONNRESET|ECONNABORTED|EMFILE|ENFILE|ENOENT|EPIPE|ETIMEDOUT|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN|ENOTFOUND|EAI_AGAIN|ERR_STREAM_DESTROYED)$/

function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return error
  const { code: given, statusCode = 500, message = '' } = error as Partial<FastifyError> // whatever was thrown
  // That of a DOMException is a number.
  const code = typeof given === 'string' ? given : ''
  if (code === 'FST_ERR_VALIDATION') return edge('validation_error', { message })
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return edge('unsupported_media_type')
  // Node's message for a client that disconnects during its body; the answer is not received.
  if (code === 'ECONNRESET' && message === 'aborted')
    return edge('validation_error', { message: 'The body broke off' })
  if (UNAVAILABLE.test(code) || LOST_CONNECTION.test(message)) {
    return edge('service_unavailable', { cause: error })
  }
  if (code.startsWith('FST_') && statusCode < 500) return edge('validation_error', { message })
  return edge('internal_error', { cause: error })
}

/** Messages of `pg`, without a code, for connections that cannot be opened or break during a statement. */
const LOST_CONNECTION =
  /^(Connection terminated|timeout exceeded when trying to connect|timeout expired|Client (was closed|has encountered a connection error))/
