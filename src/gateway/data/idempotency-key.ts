import { hash } from 'node:crypto'
import type { Persona } from '#databases/drivers/driver.ts'
import type { Plan } from '#databases/plan/plan.ts'
import type { Body } from '#databases/request/fields.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { fail } from '../errors.ts'

/** The stored key depends on API key, client, session user and the caller's key. */
export function keyOf(
  { client, grant, persona }: GatewayCaller,
  { keys }: { readonly keys: readonly string[] },
): string | undefined {
  const [key, other] = [...new Set(keys)]
  if (key === undefined) return undefined
  if (other !== undefined || !/^[\x20-\x7e]{1,255}$/.test(key))
    throw fail('invalid_idempotency_key', {
      hint: 'Idempotency-Key must have 1 to 255 printable ASCII characters, and idempotency_key in the body must be the same.',
    })
  const who = grant.kind === 'key' ? grant.key.publicId : grant.kind === 'session' ? grant.userId : grant.kind
  return hash(
    'sha256',
    JSON.stringify([client.name, who, key, ...(persona === undefined ? [] : [userOf(persona)])]),
  )
}

/** Undefined without a session. */
const userOf = ({ claims }: Persona): unknown => JSON.parse(claims).user_id

/** The parts of a transaction that determine its effect. */
type TransactionEffect = {
  readonly operations: readonly { readonly kind: string; readonly payload: Body }[]
  readonly options: object
  readonly stripNulls: boolean
}

/**
 * The digest includes hidden results and the claims for policies, so that a replay never returns rows that the caller may no longer see.
 * The session id is excluded: a new session of the same user is the same caller.
 */
export function digestOf(
  { persona }: GatewayCaller,
  { operations, options, stripNulls }: TransactionEffect,
  steps: readonly { readonly plan: Plan }[],
): string {
  const silenced = steps.map(({ plan }) => 'head' in plan.request && plan.request.head)
  const seenAs = persona && { role: persona.role, ...JSON.parse(persona.claims), session_id: null }
  // Operation ids only name results and do not affect the work.
  const done = operations.map(({ kind, payload }) => [kind, payload])
  return hash('sha256', JSON.stringify([done, options, stripNulls, silenced, seenAs]))
}
