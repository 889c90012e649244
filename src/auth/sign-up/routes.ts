import { Type } from 'typebox'
import { IMAGE_MAX } from '#identity/images.ts'
import { NAME_MAX } from '#identity/names.ts'
import { SignedInUser } from '#identity/schemas.ts'
import { open } from '#kernel/http/access.ts'
import { named } from '#kernel/http/components.ts'
import { Nullable } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { giveToken } from '../cookies.ts'
import { REFUSED_PASSWORD } from '../errors.ts'
import { signInContextOf } from '../sign-in-context.ts'
import { signUp } from './sign-up.ts'

const SignUpEmail = Type.Object({
  name: Type.String({ maxLength: NAME_MAX, examples: ['Ada Lovelace'] }),
  email: Type.String({ maxLength: 320, examples: ['ada@example.com'] }),
  password: Type.String({ maxLength: 1_024, examples: ['correct horse battery'] }),
  image: Type.Optional(Nullable(Type.String({ maxLength: IMAGE_MAX }))),
  username: Type.Optional(Type.String({ maxLength: 128 })),
  displayUsername: Type.Optional(Type.String({ maxLength: 128 })),
  callbackURL: Type.Optional(Type.String({ description: 'Where the link in the verification mail leads' })),
  rememberMe: Type.Optional(Type.Boolean({ default: true })),
})

const SignedUp = Type.Object(
  {
    token: Nullable(Type.String({ description: 'Null when the email has to be verified first' })),
    user: SignedInUser,
  },
  named('SignedUp'),
)

export function signUpRoutes(app: App, kernel: Kernel): void {
  app.route({
    method: 'POST',
    url: '/sign-up/email',
    config: {
      access: open,
      startsSession: true,
      limit: 'sign_up',
      redirects: ['callbackURL'],
      failures: [
        'INVALID_EMAIL',
        'INVALID_USERNAME',
        ...REFUSED_PASSWORD,
        'USER_ALREADY_EXISTS',
        'USERNAME_IS_ALREADY_TAKEN',
        'SIGN_UP_DISABLED',
      ],
    },
    schema: { summary: 'Sign up with email and password', body: SignUpEmail, response: { 200: SignedUp } },
    handler: async (request, reply) => {
      const { user, admission } = await signUp(
        kernel,
        request.body,
        signInContextOf(kernel, request, reply, request.body),
      )
      if (admission !== undefined) giveToken(kernel.config, reply, admission.token, admission.maxAge)
      return { token: admission?.token ?? null, user }
    },
  })
}
