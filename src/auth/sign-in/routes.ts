import { Type } from 'typebox'
import { usernameFrom } from '#identity/usernames.ts'
import { isUsernameTaken } from '#identity/users.ts'
import { open } from '#kernel/http/access.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { noteLoginMethod } from '../door/cookies.ts'
import { finishSignIn, SignInAnswer } from '../door/finish-sign-in.ts'
import { signInContextOf } from '../door/sign-in-context.ts'
import { CallbackUrl, Email, Password, RememberMe } from '../schemas.ts'
import { signInWithEmail, signInWithUsername } from './sign-in.ts'

const PASSWORD_SIGN_IN = {
  password: Password({ minLength: 1 }),
  callbackURL: CallbackUrl('Where to go then; the answer carries it as `url`'),
  rememberMe: RememberMe,
}
const SignInEmail = Type.Object({ email: Email, ...PASSWORD_SIGN_IN })
const SignInUsername = Type.Object({
  username: Type.String({ minLength: 1, maxLength: 128, examples: ['ada'] }),
  ...PASSWORD_SIGN_IN,
})

export function signInRoutes(app: App, kernel: Kernel): void {
  const config = {
    access: open,
    startsSession: true,
    captcha: true,
    hashes: true,
    limit: 'sign_in',
    redirects: ['callbackURL'],
  } as const
  app.route({
    method: 'POST',
    url: '/sign-in/email',
    config: {
      ...config,
      failures: ['INVALID_EMAIL', 'INVALID_EMAIL_OR_PASSWORD', 'PASSWORD_CHANGE_REQUIRED'],
    },
    schema: {
      summary: 'Sign in with email and password',
      body: SignInEmail,
      response: { 200: SignInAnswer },
    },
    handler: async (request, reply) => {
      const { body } = request
      const admission = await signInWithEmail(
        request.kernel,
        body,
        signInContextOf(kernel, request, reply, body),
      )
      noteLoginMethod(kernel, reply, 'email')
      return finishSignIn(kernel, reply, admission, body.callbackURL)
    },
  })
  app.route({
    method: 'POST',
    url: '/sign-in/username',
    config: { ...config, failures: ['INVALID_USERNAME_OR_PASSWORD', 'PASSWORD_CHANGE_REQUIRED'] },
    schema: {
      summary: 'Sign in with username and password',
      body: SignInUsername,
      response: { 200: SignInAnswer },
    },
    handler: async (request, reply) => {
      const { body } = request
      const admission = await signInWithUsername(
        request.kernel,
        body,
        signInContextOf(kernel, request, reply, body),
      )
      noteLoginMethod(kernel, reply, 'username')
      return finishSignIn(kernel, reply, admission, body.callbackURL)
    },
  })
  app.route({
    method: 'POST',
    url: '/is-username-available',
    config: { access: open },
    schema: {
      summary: 'Is a username free?',
      body: Type.Object({ username: Type.String({ maxLength: 128, examples: ['ada'] }) }),
      response: { 200: Type.Object({ available: Type.Boolean() }) },
    },
    handler: async ({ body }) => {
      const name = usernameFrom(body.username)
      return { available: name !== undefined && !(await isUsernameTaken(kernel.db, name.username)) }
    },
  })
}
