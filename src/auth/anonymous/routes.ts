import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AuthAccess } from '../door/access.ts'
import { clearSessionToken, noteLoginMethod } from '../door/cookies.ts'
import { finishSignIn, SignInAnswer } from '../door/finish-sign-in.ts'
import { signInContextOf } from '../door/sign-in-context.ts'
import { SUCCESS, Succeeded } from '../schemas.ts'
import { deleteAnonymousUser, signInAnonymously } from './anonymous.ts'

export function anonymousRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  if (!kernel.config.auth.anonymous.enabled) return
  app.route({
    method: 'POST',
    url: '/sign-in/anonymous',
    config: {
      access: access.known,
      startsSession: true,
      captcha: true,
      captchaInSession: true,
      limit: 'anonymous',
      failures: ['ANONYMOUS_USERS_CANNOT_SIGN_IN_AGAIN_ANONYMOUSLY'],
    },
    schema: {
      operationId: 'signInAnonymous',
      summary: 'Add a user without an address, and sign in',
      description:
        'The user keeps the id when an address, a passkey or an account of a provider is added. Without a session and older than ' +
        '`auth.anonymous.prune_after`, it is deleted.',
      response: { 200: SignInAnswer },
    },
    handler: async (request, reply) => {
      const context = signInContextOf(kernel, request, reply)
      const admission = await signInAnonymously(request.kernel, request.knownCaller, context)
      noteLoginMethod(kernel, reply, 'anonymous')
      return finishSignIn(kernel, reply, admission)
    },
  })
  app.route({
    method: 'POST',
    url: '/delete-anonymous-user',
    config: { access: access.signedIn, failures: ['USER_IS_NOT_ANONYMOUS', 'DELETE_USER_DISABLED'] },
    schema: {
      summary: 'Delete the own anonymous user',
      response: { 200: Succeeded },
    },
    handler: async (request, reply) => {
      await deleteAnonymousUser(request.kernel, request.caller)
      clearSessionToken(kernel.config, reply)
      return SUCCESS
    },
  })
}
