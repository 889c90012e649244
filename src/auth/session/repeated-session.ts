import type { onSendHookHandler } from 'fastify'
import type { Sessions } from '#identity/live-sessions.ts'
import type { Session } from '#identity/sessions.ts'
import { type FastPath, type Repeatable, type RepeatedAnswer, repeatable } from '#kernel/http/fast-path.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { mayHaveToken, type Tokens } from '../jwt/jwt.ts'

/**
 * The hooks of this surface and of the route. Of a GET by Bearer with a live session, `protectRoute` and `askCaptcha` count and demand nothing;
 * what `addFields` adds is in the answer; the others are about bodies and redirects.
 */
const HOOKS = ['protectRoute', 'renewCaller', 'judgeTargets', 'askCaptcha', 'addFields', 'keepAnswer']

/** An answer, and the JSON web token in its header. */
type KeptAnswer = RepeatedAnswer & { readonly jwt: string | undefined }

/**
 * Repeats get-session (decision 69). An answer hangs on the row of its session in memory, which coherence drops as soon as something of the
 * session or its user changes: what is repeated is as true as a look into that memory.
 */
export function createRepeatedSessions(
  kernel: Kernel,
  { sessions, tokens }: { readonly sessions: Sessions; readonly tokens: Tokens },
): { readonly fastPath: FastPath; readonly keepAnswer: onSendHookHandler } {
  const { limits, auth } = kernel.config
  const sendsTokens = auth.jwt.enabled && auth.jwt.header
  /** Undefined for a session that was in memory when it was asked for: the answer to that is kept. A session that is asked for once is not. */
  const answers = new WeakMap<Session, KeptAnswer | undefined>()

  function keep(session: Session, { token, answer }: Repeatable, jwt: unknown): void {
    const live = sessions.held(token)
    // Another row by now is not what the answer says.
    if (live?.session !== session) return
    if (typeof jwt === 'string') answers.set(session, { ...answer, jwt })
    // Else hooks have refused the token, for a while.
    else if (!sendsTokens || !mayHaveToken(kernel, live)) answers.set(session, { ...answer, jwt: undefined })
  }

  return {
    fastPath: {
      hooks: HOOKS,
      find(token) {
        const live = sessions.held(token)
        if (live === undefined) return undefined
        const answer = answers.get(live.session)
        if (answer === undefined) answers.set(live.session, undefined)
        return answer?.jwt === undefined || answer.jwt === tokens.held(kernel, live) ? answer : undefined
      },
    },
    keepAnswer(request, reply, body, done) {
      const { knownCaller: caller } = request
      if (caller !== undefined && answers.has(caller.session)) {
        const found = repeatable(request, reply, body, limits.header)
        if (found !== undefined) keep(caller.session, found, reply.getHeader(HEADER.authJwt))
      }
      done()
    },
  }
}
