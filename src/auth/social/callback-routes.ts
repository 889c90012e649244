import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { open } from '#kernel/http/access.ts'
import { presentedToken } from '#kernel/http/presented-token.ts'
import { NOT_EMPTY } from '#kernel/http/schemas.ts'
import { continueInConsole } from '#kernel/http/session-cookie.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AuthAccess } from '../door/access.ts'
import { noteLoginMethod, STATE_COOKIE } from '../door/cookies.ts'
import { finishRedirectedSignIn } from '../door/finish-sign-in.ts'
import { signInContextOf } from '../door/sign-in-context.ts'
import { asAnswer } from '../redirect.ts'
import type { SocialProviders } from './social-providers.ts'
import { completeVisit, type Return } from './visit.ts'

/** Parameters of an authorization response; all others are ignored. */
const RESPONSE = ['code', 'state', 'error', 'iss', 'user'] as const
const Parameter = (maxLength: number) => Type.Optional(Type.String({ maxLength }))
/** Together they fit in the headers of a request (`limits.header`), since a form's answer goes on as a query. */
const Response = Type.Object(
  {
    code: Parameter(4_096),
    state: Parameter(256),
    error: Parameter(256),
    iss: Parameter(1_024),
    user: Parameter(2_048),
  },
  NOT_EMPTY,
)
const Provider = Type.Object({ provider: Type.String({ maxLength: 64 }) })
const REDIRECTED = {
  type: 'null',
  description: 'Where the browser goes on',
  headers: { location: { type: 'string', format: 'uri-reference' } },
}

/** The way back from providers. Only here are forms read, which pages of other sites can send. */
export function callbackRoutes(
  app: App,
  kernel: Kernel,
  access: AuthAccess,
  providers: SocialProviders,
): void {
  app.route({
    method: 'GET',
    url: '/callback/:provider',
    config: {
      access: access.known,
      captcha: false,
      // Also in a session, whose reads are not counted: it asks a provider, and hooks.
      limit: 'default',
      whileImpersonating: true,
      withoutSecondFactor: true,
    },
    schema: {
      operationId: 'completeSocial',
      summary: 'The way back from a provider',
      params: Provider,
      querystring: Response,
      response: { 302: REDIRECTED },
    },
    handler: async (request, reply) => {
      // A look at the address redeems nothing.
      if (request.method === 'HEAD') return asAnswer(reply.send())
      const context = signInContextOf(kernel, request, reply)
      const {
        target,
        admission,
        isOfConsole = false,
      } = await completeVisit(request.kernel, providers, returnOf(kernel, request), context)
      continueInConsole(request, isOfConsole)
      if (admission !== undefined) noteLoginMethod(kernel, reply, request.params.provider)
      const to = admission === undefined ? target : finishRedirectedSignIn(kernel, reply, admission, target)
      return asAnswer(reply.redirect(to, 302))
    },
  })
  app.route({
    method: 'POST',
    url: '/callback/:provider',
    config: { access: open, anyOrigin: true },
    schema: {
      operationId: 'forwardSocial',
      summary: 'The way back from a provider that sends a form',
      params: Provider,
      body: Response,
      consumes: ['application/x-www-form-urlencoded'],
      response: { 303: REDIRECTED },
    },
    // A form from another site comes without our cookies, which are SameSite=Lax. The GET has them.
    handler: (request, reply) => {
      const { provider } = request.params
      const path = `${kernel.config.auth.base_path}/callback/${encodeURIComponent(provider)}`
      return asAnswer(reply.redirect(`${path}?${answerOf(request.body)}`, 303))
    },
  })
}

type CallbackRequest = FastifyRequest & { params: Static<typeof Provider>; query: Static<typeof Response> }

function returnOf(kernel: Kernel, request: CallbackRequest): Return {
  const { knownCaller: caller } = request
  const isForeign = caller === undefined && presentedToken(kernel.config, request) !== undefined
  return {
    provider: request.params.provider,
    answer: answerOf(request.query),
    mark: STATE_COOKIE.of(request),
    session: isForeign ? 'none' : caller,
  }
}

const answerOf = (response: Static<typeof Response>): URLSearchParams =>
  new URLSearchParams(
    RESPONSE.flatMap((name) => (response[name] === undefined ? [] : [[name, response[name]]])),
  )
