import { Type } from 'typebox'
import { IMAGE_MAX } from '#identity/images.ts'
import { NAME_MAX } from '#identity/names.ts'
import { SignedInUser } from '#identity/schemas.ts'
import { open } from '#kernel/http/access.ts'
import { named } from '#kernel/http/document/components.ts'
import { Nullable } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { withFields } from '../custom-fields/bodies.ts'
import { noteLoginMethod } from '../door/cookies.ts'
import { finishSignIn } from '../door/finish-sign-in.ts'
import { signInContextOf } from '../door/sign-in-context.ts'
import { CUSTOM_FIELD_FAILURES, PASSWORD_POLICY_FAILURES } from '../errors.ts'
import { CallbackUrl, Email, Password, RememberMe } from '../schemas.ts'
import { signUp } from './sign-up.ts'

const SignUpEmail = Type.Object({
  name: Type.String({ maxLength: NAME_MAX, examples: ['Ada Lovelace'] }),
  email: Email,
  password: Password(),
  image: Type.Optional(Nullable(Type.String({ maxLength: IMAGE_MAX }))),
  username: Type.Optional(Type.String({ maxLength: 128 })),
  displayUsername: Type.Optional(Type.String({ maxLength: 128 })),
  callbackURL: CallbackUrl('Where the link in the verification mail leads'),
  rememberMe: RememberMe,
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
      captcha: true,
      limit: 'sign_up',
      redirects: ['callbackURL'],
      failures: [
        'INVALID_EMAIL',
        'INVALID_USERNAME',
        ...PASSWORD_POLICY_FAILURES,
        'USER_ALREADY_EXISTS',
        'USERNAME_IS_ALREADY_TAKEN',
        ...CUSTOM_FIELD_FAILURES,
        'SIGN_UP_DISABLED',
      ],
    },
    schema: {
      summary: 'Sign up with email and password',
      body: withFields(kernel.config, SignUpEmail, { by: 'user', isNew: true }),
      response: { 200: SignedUp },
    },
    handler: async (request, reply) => {
      const { body } = request
      const { user, admission } = await signUp(
        request.kernel,
        body,
        signInContextOf(kernel, request, reply, body),
      )
      if (admission !== undefined) noteLoginMethod(kernel, reply, 'email')
      return { token: null, ...(admission && finishSignIn(kernel, reply, admission)), user }
    },
  })
}
