import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { isTokenShaped } from '#identity/tokens.ts'
import { named } from '#kernel/http/document/components.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken } from '#kernel/random.ts'
import { STATE_COOKIE } from '../door/cookies.ts'
import { CallbackUrl } from '../schemas.ts'
import { STATE_LIFETIME } from './state.ts'

/** RFC 6749, appendices A.12 and A.17. */
const Token = Type.Optional(Type.String({ maxLength: 16_384, pattern: '^[ -~]*$' }))
const IdToken = Type.Object(
  {
    token: Type.String({ minLength: 1, maxLength: 16_384 }),
    nonce: Type.Optional(Type.String({ maxLength: 512 })),
    accessToken: Token,
    refreshToken: Token,
    expiresAt: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 253_402_300_799_999,
        description: 'End of the access token, since 1970',
      }),
    ),
  },
  {
    ...named('ProviderIdToken'),
    description:
      'An ID token that a native app or a script of the provider has received, in place of the redirect',
  },
)
/** A visit to a provider. */
export const VISIT = {
  provider: Type.String({ maxLength: 64, examples: ['google'] }),
  callbackURL: CallbackUrl('Where the browser is sent then'),
  errorCallbackURL: CallbackUrl('Where it is sent after a failure, with `?error=`'),
  disableRedirect: Type.Optional(
    Type.Boolean({ default: false, description: 'The client goes to `url` by itself' }),
  ),
  scopes: Type.Optional(
    Type.Array(Type.String({ maxLength: 256, pattern: '^[!#-\\[\\]-~]+$' }), { maxItems: 64 }),
  ),
  idToken: Type.Optional(IdToken),
}

/** The mark of this browser, which several visits share: those of two tabs at once. */
export function markOf({ config, random }: Kernel, request: FastifyRequest, reply: FastifyReply): string {
  const presented = STATE_COOKIE.of(request)
  const mark = presented !== undefined && isTokenShaped(presented) ? presented : randomToken(random)
  STATE_COOKIE.set(config, reply, mark, STATE_LIFETIME)
  return mark
}
