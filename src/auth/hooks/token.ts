import type { Claims } from '#identity/jwt/jws.ts'
import type { LiveSession } from '#identity/live-sessions.ts'
import { RESERVED_CLAIMS } from '#kernel/config/sections/auth-jwt.ts'
import { type HookAnswer, HookProblem } from '#kernel/hooks/answer.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { translatingRefusals } from './refusals.ts'
import { shownUser } from './sign-in.ts'

type Token = { readonly template: string | undefined; readonly claims: Claims }

/** The user as hooks are told of one, which is more than the claims of a token. Null without such a hook. */
export const toldOfUser = ({ hooks }: Kernel, { user }: LiveSession) =>
  hooks.has('token') ? shownUser(user) : null

/** The claims that hooks add to a token, which has these already. Nothing may be held meanwhile. */
export async function claimsOfHooks(
  kernel: Kernel,
  { user, session, organizationRole }: LiveSession,
  { template, claims }: Token,
): Promise<Claims> {
  if (!kernel.hooks.has('token')) return {}
  const { id, activeOrganizationId: organization, amr } = session
  const data = {
    user: shownUser(user),
    session_id: id,
    amr: amr ?? [],
    organization: organization === null ? null : { id: organization, role: organizationRole },
    template: template ?? null,
    audience: claims.aud,
  }
  return translatingRefusals(kernel, { action: 'token.failed', targetId: user.id }, async () => {
    let added: Claims = {}
    await kernel.hooks.ask('token', { data, address: kernel.origin.ipAddress }, (answer) => {
      added = withAnswered(added, answer, claims)
    })
    return added
  })
}

/** Bytes of all claims of hooks as JSON. A token travels in headers, and one in memory has about as much again. */
const CLAIMS_MAX = 2_048

const RESERVED: ReadonlySet<string> = new Set([...RESERVED_CLAIMS, 'role', '__proto__'])

function withAnswered(before: Claims, { claims: answered = {} }: HookAnswer, ours: Claims): Claims {
  const added = Object.fromEntries(
    Object.entries(answered).map(([name, value]) => {
      if (RESERVED.has(name) || Object.hasOwn(ours, name))
        throw new HookProblem('its claims have one that the service sets itself')
      if (!/^[\x21-\x7e]{1,100}$/.test(name))
        throw new HookProblem('its claims have a name that is not visible ASCII')
      return [name, value]
    }),
  )
  const all = { ...before, ...added }
  if (Buffer.byteLength(JSON.stringify(all, exactly)) > CLAIMS_MAX)
    throw new HookProblem(`its claims have more than ${CLAIMS_MAX} bytes`)
  return all
}

/** A replacer of JSON. A larger number has been rounded, so that two ids would be one, and verifiers refuse broken Unicode. */
function exactly(name: string, value: unknown): unknown {
  if (typeof value === 'number' && !(Math.abs(value) <= Number.MAX_SAFE_INTEGER))
    throw new HookProblem(`its claims have a number beyond ${Number.MAX_SAFE_INTEGER}`)
  if (!name.isWellFormed() || (typeof value === 'string' && !value.isWellFormed()))
    throw new HookProblem('its claims have broken Unicode')
  return value
}
