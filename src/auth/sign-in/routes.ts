import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import { SignedInUser } from '#identity/schemas.ts'
import { usernameFrom } from '#identity/usernames.ts'
import { isUsernameTaken } from '#identity/users.ts'
import { open } from '#kernel/http/access.ts'
import { named } from '#kernel/http/components.ts'
import { Nullable } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Admission } from '../admit.ts'
import { giveToken } from '../cookies.ts'
import { signInContextOf } from '../sign-in-context.ts'
import { signInWithEmail, signInWithUsername } from './sign-in.ts'

const Password = Type.String({ minLength: 1, maxLength: 1_024, examples: ['correct horse battery'] })
const RememberMe = Type.Optional(
  Type.Boolean({
    default: true,
    description: 'False: the session ends with the browser, after a day at the latest',
  }),
)

const CallbackURL = Type.Optional(
  Type.String({ description: 'Where to go then; the answer carries it as `url`' }),
)

const SignInEmail = Type.Object({
  email: Type.String({ maxLength: 320, examples: ['ada@example.com'] }),
  password: Password,
  callbackURL: CallbackURL,
  rememberMe: RememberMe,
})

const SignInUsername = Type.Object({
  username: Type.String({ minLength: 1, maxLength: 128, examples: ['ada'] }),
  password: Password,
  callbackURL: CallbackURL,
  rememberMe: RememberMe,
})

const SignInAnswer = Type.Object(
  {
    redirect: Type.Boolean(),
    token: Type.String(),
    url: Nullable(Type.String()),
    user: SignedInUser,
  },
  named('SignedIn'),
)

export function signInRoutes(app: App, kernel: Kernel): void {
  app.route({
    method: 'POST',
    url: '/sign-in/email',
    config: {
      access: open,
      startsSession: true,
      limit: 'sign_in',
      redirects: ['callbackURL'],
      failures: ['INVALID_EMAIL', 'INVALID_EMAIL_OR_PASSWORD', 'PASSWORD_CHANGE_REQUIRED'],
    },
    schema: {
      summary: 'Sign in with email and password',
      body: SignInEmail,
      response: { 200: SignInAnswer },
    },
    handler: async (request, reply) => {
      const { body } = request
      const signedIn = await signInWithEmail(kernel, body, signInContextOf(kernel, request, reply, body))
      return handOver(kernel, reply, signedIn, body.callbackURL)
    },
  })
  app.route({
    method: 'POST',
    url: '/sign-in/username',
    config: {
      access: open,
      startsSession: true,
      limit: 'sign_in',
      redirects: ['callbackURL'],
      failures: ['INVALID_USERNAME_OR_PASSWORD', 'PASSWORD_CHANGE_REQUIRED'],
    },
    schema: {
      summary: 'Sign in with username and password',
      body: SignInUsername,
      response: { 200: SignInAnswer },
    },
    handler: async (request, reply) => {
      const { body } = request
      const signedIn = await signInWithUsername(kernel, body, signInContextOf(kernel, request, reply, body))
      return handOver(kernel, reply, signedIn, body.callbackURL)
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

/** The token goes into the cookie, the header and the answer. */
function handOver(
  { config }: Kernel,
  reply: FastifyReply,
  { token, maxAge, user }: Admission,
  url: string | null = null,
) {
  giveToken(config, reply, token, maxAge)
  return { redirect: url !== null, token, url, user }
}
