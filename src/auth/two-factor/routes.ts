import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { nameFrom } from '#identity/names.ts'
import { SignedInUser } from '#identity/schemas.ts'
import { Failure } from '#kernel/errors.ts'
import { named } from '#kernel/http/document/components.ts'
import { edge } from '#kernel/http/failures.ts'
import { Id, Nullable, Timestamp } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AuthAccess } from '../door/access.ts'
import { KNOWN_DEVICE_COOKIE, PENDING_COOKIE } from '../door/cookies.ts'
import { sendStartedSession } from '../door/finish-sign-in.ts'
import { signInContextOf } from '../door/sign-in-context.ts'
import { PASSWORD_CHECK_FAILURES, SECOND_FACTOR_FAILURES } from '../errors.ts'
import { Password, Status } from '../schemas.ts'
import type { CheckName } from './checks.ts'
import { disable, enrol, renewBackupCodes, totpUriOf } from './enrolment.ts'
import { sendCode } from './mailed-code.ts'
import { presentedPending } from './pending.ts'
import {
  notPending,
  type TypedCode,
  type VerificationPlace,
  type VerifiedSession,
  verifySecondFactor,
} from './verification.ts'

const OWNER = {
  password: Type.Optional(
    Password({ description: 'Of the account, unless it has none: then a fresh session' }),
  ),
}
const REVOKING = {
  revokeOtherSessions: Type.Optional(
    Type.Boolean({ default: false, description: 'End every other session of the user' }),
  ),
}
const Owner = Type.Object(OWNER)
const Change = Type.Object({ ...OWNER, ...REVOKING })
const TotpUri = Type.String({ description: 'For the QR code that an authenticator app reads' })
const BackupCodes = Type.Array(Type.String({ examples: ['k3x9p-m2q7w'] }))
const PendingToken = Type.Optional(
  Type.String({
    maxLength: 256,
    description: 'The `2fa_…` token, if neither the cookie nor Bearer carries it',
  }),
)

export function twoFactorRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  const config = { access: access.signedIn, enrols: true, limit: 'two_factor' } as const
  const failures = [...PASSWORD_CHECK_FAILURES, 'SESSION_NOT_FRESH', 'USER_IS_ANONYMOUS']
  app.route({
    method: 'POST',
    url: '/two-factor/enable',
    config: { ...config, failures },
    schema: {
      operationId: 'enableTwoFactor',
      summary: 'Begin a second factor; its first right code puts it in force',
      body: Type.Object({
        ...OWNER,
        method: Type.Optional(Type.Enum(['totp', 'otp'], { default: 'totp' })),
        issuer: Type.Optional(Type.String({ description: 'Name of the service in the authenticator app' })),
      }),
      response: {
        200: Type.Object({
          method: Type.Enum(['totp', 'otp']),
          totpURI: Nullable(TotpUri),
          backupCodes: BackupCodes,
        }),
      },
    },
    handler: async (request) => {
      const { password, method = 'totp', issuer } = request.body
      return enrol(request.kernel, request.caller, {
        password,
        method,
        issuer: issuer === undefined ? undefined : acceptableIssuer(issuer),
      })
    },
  })
  app.route({
    method: 'POST',
    url: '/two-factor/disable',
    config: { ...config, failures: [...failures, 'TWO_FACTOR_NOT_ENABLED'] },
    schema: {
      operationId: 'disableTwoFactor',
      summary: 'End the second factor',
      body: Change,
      response: { 200: Status },
    },
    handler: async (request) => {
      await disable(request.kernel, request.caller, request.body)
      return { status: true }
    },
  })
  app.route({
    method: 'POST',
    url: '/two-factor/get-totp-uri',
    config: { ...config, failures: [...failures, 'TOTP_NOT_ENABLED'] },
    schema: {
      summary: 'The URI of the authenticator app once more',
      body: Owner,
      response: { 200: Type.Object({ totpURI: TotpUri }) },
    },
    handler: async (request) => ({ totpURI: await totpUriOf(kernel, request.caller, request.body) }),
  })
  app.route({
    method: 'POST',
    url: '/two-factor/generate-backup-codes',
    config: { ...config, failures: [...failures, 'TWO_FACTOR_NOT_ENABLED'] },
    schema: {
      summary: 'Replace the backup codes',
      body: Change,
      response: { 200: Type.Object({ status: Type.Boolean(), backupCodes: BackupCodes }) },
    },
    handler: async (request) => {
      const codes = await renewBackupCodes(request.kernel, request.caller, request.body)
      return { status: true, backupCodes: codes }
    },
  })
  verificationRoutes(app, kernel, access)
}

/** One line without control characters. A colon would end the name in the URI's label. */
function acceptableIssuer(text: string): string {
  const issuer = nameFrom(text)
  if (issuer === undefined || issuer === '' || issuer.includes(':'))
    throw edge('validation_error', {
      message: 'issuer must be one line of at most 100 characters, without a colon',
    })
  return issuer
}

const TYPED = {
  trustDevice: Type.Optional(
    Type.Boolean({ default: false, description: 'This browser needs no second factor for 30 days' }),
  ),
  disableSession: Type.Optional(Type.Boolean({ default: false, description: 'Set no session cookie' })),
  token: PendingToken,
  ...REVOKING,
}
const Code = Type.Object({ code: Type.String({ maxLength: 64, examples: ['287082'] }), ...TYPED })
const VerifiedAnswer = Type.Object({ status: Type.Boolean(), token: Type.String(), user: SignedInUser })
const VerifiedByBackupCode = Type.Object({
  ...VerifiedAnswer.properties,
  session: Type.Object(
    { token: Type.String(), userId: Id, createdAt: Timestamp, expiresAt: Timestamp },
    named('ReducedSession'),
  ),
})

type VerifyRequest = FastifyRequest<{ Body: TypedCode & { disableSession?: boolean; token?: string } }>

/** A sign-in that waits for its second factor, or a session. */
function verificationRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  const config = { access: access.known, withoutSecondFactor: true, limit: 'two_factor' } as const
  const onVerifying = onVerifyingWith(kernel)
  const verify = async (
    request: VerifyRequest,
    reply: FastifyReply,
    name: CheckName,
  ): Promise<VerifiedSession> => {
    const { body } = request
    const context = signInContextOf(kernel, request, reply)
    const verified = await onVerifying(request, reply, body.token, (by) =>
      verifySecondFactor(request.kernel, by, name, body, context),
    )
    sendStartedSession(kernel.config, reply, verified, { withCookie: body.disableSession !== true })
    return verified
  }
  app.route({
    method: 'POST',
    url: '/two-factor/verify-totp',
    config: {
      ...config,
      startsSession: true,
      failures: [...SECOND_FACTOR_FAILURES, 'WRONG_CODE', 'TOTP_NOT_ENABLED'],
    },
    schema: {
      summary: 'Complete a sign-in, or put a new factor in force, by a code of the authenticator app',
      body: Code,
      response: { 200: VerifiedAnswer },
    },
    handler: async (request, reply) => {
      const { token, user } = await verify(request, reply, 'totp')
      return { status: true, token, user }
    },
  })
  app.route({
    method: 'POST',
    url: '/two-factor/send-otp',
    config: { ...config, captcha: false, failures: [...SECOND_FACTOR_FAILURES, 'OTP_NOT_ENABLED'] },
    schema: {
      summary: 'Mail a code',
      body: Type.Object({ token: PendingToken }),
      response: { 200: Status },
    },
    handler: async (request, reply) => {
      await onVerifying(request, reply, request.body.token, (by) => sendCode(request.kernel, by))
      return { status: true }
    },
  })
  app.route({
    method: 'POST',
    url: '/two-factor/verify-otp',
    config: {
      ...config,
      startsSession: true,
      failures: [...SECOND_FACTOR_FAILURES, 'WRONG_CODE', 'OTP_HAS_EXPIRED', 'OTP_NOT_ENABLED'],
    },
    schema: {
      summary: 'Complete a sign-in, or put a new factor in force, by a mailed code',
      body: Code,
      response: { 200: VerifiedAnswer },
    },
    handler: async (request, reply) => {
      const { token, user } = await verify(request, reply, 'otp')
      return { status: true, token, user }
    },
  })
  app.route({
    method: 'POST',
    url: '/two-factor/verify-backup-code',
    config: {
      ...config,
      startsSession: true,
      failures: [...SECOND_FACTOR_FAILURES, 'INVALID_BACKUP_CODE', 'TWO_FACTOR_NOT_ENABLED'],
    },
    schema: {
      summary: 'Complete a sign-in by a backup code, which works once',
      body: Code,
      response: { 200: VerifiedByBackupCode },
    },
    handler: async (request, reply) => {
      const { token, user, session } = await verify(request, reply, 'backup')
      return { status: true, token, user, session: { ...session, token } }
    },
  })
}

/**
 * Runs the work on the sign-in that waits for its second factor, named by body, Bearer or cookie in this order, else on the session. A
 * cookie of a sign-in that is over is removed, since it would hide the session next time, too.
 */
const onVerifyingWith =
  ({ config }: Kernel) =>
  async <T>(
    request: FastifyRequest,
    reply: FastifyReply,
    inBody: string | undefined,
    work: (by: VerificationPlace) => Promise<T>,
  ): Promise<T> => {
    const pending = presentedPending(request, inBody)
    const by =
      pending === undefined
        ? request.knownCaller && { caller: request.knownCaller }
        : { pending, knownDevice: KNOWN_DEVICE_COOKIE.of(request) }
    if (by === undefined) throw notPending()
    try {
      return await work(by)
    } catch (error) {
      if (error instanceof Failure && error.code === 'INVALID_TWO_FACTOR_COOKIE')
        PENDING_COOKIE.clear(config, reply)
      throw error
    }
  }
