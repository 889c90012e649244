import { Type } from 'typebox'
import { listPasskeys } from '#identity/passkeys.ts'
import { proofHolds } from '#identity/proof.ts'
import { open } from '#kernel/http/access.ts'
import { OneOf } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type AuthAccess, proofOf } from '../door/access.ts'
import { noteLoginMethod, PASSKEY_COOKIE } from '../door/cookies.ts'
import { finishSignIn } from '../door/finish-sign-in.ts'
import { signInContextOf } from '../door/sign-in-context.ts'
import { HOOK_FAILURES, PASSKEY_FAILURES } from '../errors.ts'
import { Status } from '../schemas.ts'
import { CHALLENGE_LIFETIME, issueRegistrationChallenge, issueSignInChallenge } from './challenges.ts'
import { creationOptions, requestOptions } from './options.ts'
import { registerPasskey, removePasskey, renamePasskey } from './passkeys.ts'
import { takeChallengeId } from './presented-challenge.ts'
import { relyingParty } from './relying-party.ts'
import {
  AssertionResponse,
  AttestationResponse,
  ChallengeId,
  CreationOptions,
  PasskeyRecord,
  PasskeySignIn,
  RequestOptions,
} from './schemas.ts'
import { signInWithPasskey } from './sign-in.ts'

const PasskeyId = Type.String({ maxLength: 64, description: 'The id of the record' })
const Name = (description: string) => Type.String({ maxLength: 1_024, examples: ['Laptop'], description })
const RevokeOtherSessions = Type.Optional(
  Type.Boolean({ default: false, description: 'Whether the other sessions of the user end' }),
)

export function passkeyRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  ceremonyRoutes(app, kernel, access)
  app.route({
    method: 'GET',
    url: '/passkey/list-user-passkeys',
    config: { access: access.signedIn, whileImpersonating: true },
    schema: { summary: 'The passkeys of the user', response: { 200: Type.Array(PasskeyRecord) } },
    handler: (request) => listPasskeys(kernel.db, request.caller.user.id),
  })
  app.route({
    method: 'POST',
    url: '/passkey/update-passkey',
    config: { access: access.signedIn, failures: ['PASSKEY_NOT_FOUND'] },
    schema: {
      summary: 'Rename a passkey',
      body: Type.Object({ id: PasskeyId, name: Name('One line of at most 100 characters') }),
      response: { 200: Type.Object({ passkey: PasskeyRecord }) },
    },
    handler: async (request) => ({
      passkey: await renamePasskey(request.kernel, request.caller, request.body),
    }),
  })
  app.route({
    method: 'POST',
    url: '/passkey/delete-passkey',
    config: { access: access.fresh, failures: ['PASSKEY_NOT_FOUND', 'FAILED_TO_UNLINK_LAST_ACCOUNT'] },
    schema: {
      summary: 'Remove a passkey',
      body: Type.Object({ id: PasskeyId, revokeOtherSessions: RevokeOtherSessions }),
      response: { 200: Status },
    },
    handler: async (request) => {
      await removePasskey(request.kernel, request.caller, request.body)
      return { status: true }
    },
  })
}

/** The requests for options and the verification of what authenticators answer. */
function ceremonyRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  const { config } = kernel
  app.route({
    method: 'GET',
    url: '/passkey/generate-register-options',
    // Counted, because it writes.
    config: {
      access: access.fresh,
      enrols: true,
      limit: 'default',
      failures: ['PASSKEY_RP_ID_INVALID'],
    },
    schema: {
      summary: 'Options to create a passkey',
      querystring: Type.Object({
        authenticatorAttachment: Type.Optional(OneOf(['platform', 'cross-platform'])),
      }),
      response: { 200: CreationOptions },
    },
    handler: async (request, reply) => {
      const rp = relyingParty(kernel)
      const caller = request.caller
      const { mustVerify, ...challenge } = await issueRegistrationChallenge(kernel, caller)
      PASSKEY_COOKIE.set(config, reply, challenge.challengeId, CHALLENGE_LIFETIME)
      const account = { user: caller.user, passkeys: await listPasskeys(kernel.db, caller.user.id) }
      const { authenticatorAttachment } = request.query
      return creationOptions(kernel, rp, challenge, account, { authenticatorAttachment, mustVerify })
    },
  })
  app.route({
    method: 'POST',
    url: '/passkey/verify-registration',
    config: {
      access: access.fresh,
      enrols: true,
      failures: [
        'SIGN_UP_DISABLED',
        'MISSING_FIELD',
        ...HOOK_FAILURES,
        'CHALLENGE_NOT_FOUND',
        'FAILED_TO_VERIFY_REGISTRATION',
        'PASSKEY_RP_ID_INVALID',
        'TOO_MANY_PASSKEYS',
      ],
    },
    schema: {
      summary: 'Add the passkey that was created',
      body: Type.Object({
        response: AttestationResponse,
        challengeId: Type.Optional(ChallengeId),
        name: Type.Optional(Name('One line of at most 100 characters')),
        revokeOtherSessions: RevokeOtherSessions,
      }),
      response: { 200: PasskeyRecord },
    },
    handler: async (request, reply) => {
      const challengeId = takeChallengeId(kernel, request, reply, request.body)
      const registration = { ...request.body, challengeId }
      const context = signInContextOf(kernel, request, reply)
      const { passkey, admission } = await registerPasskey(
        request.kernel,
        request.caller,
        registration,
        context,
      )
      if (admission !== undefined) finishSignIn(kernel, reply, admission)
      return passkey
    },
  })
  for (const method of ['GET', 'POST'] as const) {
    app.route({
      method,
      url: '/passkey/generate-authenticate-options',
      config: {
        access: access.known,
        withoutSecondFactor: true,
        limit: 'default',
        failures: ['PASSKEY_RP_ID_INVALID'],
      },
      schema: {
        operationId: 'passkeyGenerateAuthenticateOptions',
        summary: 'Options to sign in with a passkey',
        response: { 200: RequestOptions },
      },
      handler: async ({ knownCaller: caller }, reply) => {
        const rp = relyingParty(kernel)
        const challenge = await issueSignInChallenge(kernel)
        PASSKEY_COOKIE.set(config, reply, challenge.challengeId, CHALLENGE_LIFETIME)
        const isAlive = caller !== undefined && (await proofHolds(kernel, proofOf(caller)))
        const account = isAlive
          ? { ...caller, passkeys: await listPasskeys(kernel.db, caller.user.id) }
          : undefined
        return requestOptions(kernel, rp, challenge, account)
      },
    })
  }
  app.route({
    method: 'POST',
    url: '/passkey/verify-authentication',
    config: {
      access: open,
      captcha: false,
      startsSession: true,
      limit: 'sign_in',
      failures: PASSKEY_FAILURES,
    },
    schema: {
      summary: 'Sign in with a passkey',
      body: Type.Object({ response: AssertionResponse, challengeId: Type.Optional(ChallengeId) }),
      response: { 200: PasskeySignIn },
    },
    handler: async (request, reply) => {
      const challengeId = takeChallengeId(kernel, request, reply, request.body)
      const assertion = { response: request.body.response, challengeId }
      const context = signInContextOf(kernel, request, reply)
      const admission = await signInWithPasskey(request.kernel, assertion, context)
      noteLoginMethod(kernel, reply, 'passkey')
      const answer = finishSignIn(kernel, reply, admission)
      if ('pendingToken' in admission) return answer
      const { session, token } = admission
      return { ...answer, session: { ...session, token } }
    },
  })
}
