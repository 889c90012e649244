import { Type } from 'typebox'
import { open } from '#kernel/http/access.ts'
import { readForms } from '#kernel/http/bodies/body.ts'
import { edge } from '#kernel/http/failures.ts'
import { wantsPage } from '#kernel/http/page.ts'
import { OneOf } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { authUrl } from '../auth-url.ts'
import type { AuthAccess } from '../door/access.ts'
import { sendStartedSession } from '../door/finish-sign-in.ts'
import { signInContextOf } from '../door/sign-in-context.ts'
import { fail } from '../errors.ts'
import { approveDevice, denyDevice, redeemDeviceCode, requestCodes, viewDevice } from './device.ts'
import { devicePage } from './page.ts'
import { ANSWER_FAILURES, USER_CODE_FAILURES, UserCode } from './schemas.ts'

const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:device_code'
const ClientId = Type.String({
  maxLength: 128,
  examples: ['gatehouse'],
  description: 'Of auth.device.clients',
})
const Seconds = Type.Integer({ description: 'Seconds' })
const Answered = Type.Object({ success: Type.Boolean() })

/** OAuth 2.0 sends forms; the client of better-auth sends JSON. */
const BODIES = ['application/json', 'application/x-www-form-urlencoded']

/** Device authorization (RFC 8628): a device without a browser gets a session when its user approves it in one. */
export function deviceRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  app.register(async (part: App) => {
    readForms(part)
    routesOfDevices(part, kernel)
  })
  routesOfUsers(app, kernel, access)
  devicePage(app, kernel, access)
}

function routesOfDevices(app: App, kernel: Kernel): void {
  app.route({
    method: 'POST',
    url: '/device/code',
    config: { access: open, oauthErrors: true, limit: 'device_code', failures: ['INVALID_CLIENT'] },
    schema: {
      operationId: 'requestDeviceCode',
      summary: 'A code for a device, and one for its user to enter',
      description: 'Scopes of the request are not looked at; those of the settings hold.',
      body: Type.Object({ client_id: ClientId }),
      consumes: BODIES,
      response: {
        200: Type.Object({
          device_code: Type.String({ description: 'For device/token; secret' }),
          user_code: UserCode,
          verification_uri: Type.String({ format: 'uri', description: 'Where the user enters the code' }),
          verification_uri_complete: Type.String({ format: 'uri', description: 'The same with the code' }),
          expires_in: Seconds,
          interval: Type.Integer({ description: 'Seconds between two polls' }),
        }),
      },
    },
    handler: ({ body }) => requestCodes(kernel, body.client_id),
  })
  app.route({
    method: 'POST',
    url: '/device/token',
    config: {
      access: open,
      oauthErrors: true,
      startsSession: true,
      failures: [
        ...['INVALID_CLIENT', 'UNSUPPORTED_GRANT_TYPE', 'AUTHORIZATION_PENDING', 'POLLING_TOO_FREQUENTLY'],
        ...['DEVICE_DENIED', 'INVALID_DEVICE_CODE', 'EXPIRED_DEVICE_CODE'],
      ],
    },
    schema: {
      operationId: 'redeemDeviceCode',
      summary: 'The session of a device, once its user has approved it',
      description:
        'No cookie is set. Devices poll; one that polls too fast has to wait 5 seconds longer, for good.',
      body: Type.Object({
        grant_type: Type.String({ maxLength: 128, examples: [GRANT_TYPE] }),
        device_code: Type.String({
          maxLength: 256,
          examples: ['7mpl4W-vUw0wyd33uXm1C9JJdpKHwRtHzTMqRJgUjOQ'],
        }),
        client_id: ClientId,
      }),
      consumes: BODIES,
      response: {
        200: Type.Object({
          access_token: Type.String({ description: 'The session token' }),
          token_type: Type.String({ examples: ['Bearer'] }),
          expires_in: Seconds,
          scope: Type.String({ description: 'Of auth.device.clients; it restricts nothing' }),
        }),
      },
    },
    handler: async (request, reply) => {
      const { grant_type, device_code: deviceCode, client_id: clientId } = request.body
      if (grant_type !== GRANT_TYPE) throw fail('UNSUPPORTED_GRANT_TYPE')
      const context = signInContextOf(kernel, request, reply)
      const { scope, ...started } = await redeemDeviceCode(request.kernel, { clientId, deviceCode }, context)
      // The browser of a page that polls is not signed in by it.
      sendStartedSession(kernel.config, reply, started, { withCookie: false })
      const left = started.session.expiresAt.getTime() - kernel.now().getTime()
      return {
        access_token: started.token,
        token_type: 'Bearer',
        expires_in: Math.floor(left / 1_000),
        scope,
      }
    },
  })
}

function routesOfUsers(app: App, kernel: Kernel, access: AuthAccess): void {
  const config = { oauthErrors: true, limit: 'user_code' } as const
  app.route({
    method: 'GET',
    url: '/device',
    config: { ...config, access: access.known, failures: USER_CODE_FAILURES },
    schema: {
      operationId: 'viewDevice',
      summary: 'The device that shows a code; looking binds nobody',
      querystring: Type.Object({ user_code: Type.Optional(UserCode) }),
      response: {
        200: Type.Object({
          user_code: UserCode,
          status: OneOf(['pending', 'approved', 'denied']),
          client_id: Type.Optional(
            Type.String({ description: 'With a session, while the device waits for an answer' }),
          ),
          client_name: Type.Optional(Type.String({ description: 'The same' })),
          scope: Type.Optional(Type.String({ description: 'The same' })),
        }),
        302: {
          type: 'null',
          description: 'A browser: to the page of the service',
          headers: { location: { type: 'string', format: 'uri-reference' } },
        },
      },
    },
    handler: async (request, reply) => {
      const { knownCaller: caller, query } = request
      if (wantsPage(request)) return reply.redirect(authUrl(kernel, '/confirm/device', query), 302)
      if (query.user_code === undefined) throw edge('validation_error', { message: 'Send user_code' })
      const { userCode, status, client } = await viewDevice(kernel, caller, query.user_code)
      const shown = client && { client_id: client.id, client_name: client.name, scope: client.scope }
      return { user_code: userCode, status, ...shown }
    },
  })
  app.route({
    method: 'POST',
    url: '/device/approve',
    config: { ...config, access: access.fresh, failures: ANSWER_FAILURES },
    schema: {
      operationId: 'approveDevice',
      summary: 'Give the device a session of the user',
      body: Type.Object({ userCode: UserCode }),
      response: { 200: Answered },
    },
    handler: async (request) => {
      await approveDevice(request.kernel, request.caller, request.body.userCode)
      return { success: true }
    },
  })
  app.route({
    method: 'POST',
    url: '/device/deny',
    config: { ...config, access: access.signedIn, failures: ANSWER_FAILURES },
    schema: {
      operationId: 'denyDevice',
      summary: 'Refuse the device',
      body: Type.Object({ userCode: UserCode }),
      response: { 200: Answered },
    },
    handler: async (request) => {
      await denyDevice(request.kernel, request.caller, request.body.userCode)
      return { success: true }
    },
  })
}
