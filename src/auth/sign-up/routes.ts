import { Type } from 'typebox'
import { IMAGE_MAX } from '#identity/images.ts'
import { NAME_MAX } from '#identity/names.ts'
import { SignedInUser } from '#identity/schemas.ts'
import { named } from '#kernel/http/document/components.ts'
import { Nullable } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { signUpAsAnonymous } from '../anonymous/sign-up.ts'
import { withFields } from '../custom-fields/bodies.ts'
import type { AuthAccess } from '../door/access.ts'
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

export function signUpRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  const { enabled: hasAnonymous } = kernel.config.auth.anonymous
  app.route({
    method: 'POST',
    url: '/sign-up/email',
    config: {
      access: access.knownIfAnonymous,
      startsSession: true,
      captcha: true,
      captchaInSession: true,
      hashes: true,
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
        ...(hasAnonymous ? ['USER_IS_NOT_ANONYMOUS'] : []),
      ],
    },
    schema: {
      summary: 'Sign up with email and password',
      ...(hasAnonymous && {
        description:
          'In the session of an anonymous user it adds no user: address and password become those of this user when the link in the mail ' +
          'is followed.',
      }),
      body: withFields(kernel.config, SignUpEmail, { by: 'user', isNew: true }),
      response: { 200: SignedUp },
    },
    handler: async (request, reply) => {
      const { body, knownCaller: caller } = request
      const context = signInContextOf(kernel, request, reply, body)
      if (caller?.user.isAnonymous === true)
        return { token: null, user: await signUpAsAnonymous(request.kernel, caller, body, context) }
      const { user, admission } = await signUp(request.kernel, body, context)
      if (admission !== undefined) noteLoginMethod(kernel, reply, 'email')
      return { token: null, ...(admission && finishSignIn(kernel, reply, admission)), user }
    },
  })
}
