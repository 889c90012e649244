import { hash } from 'node:crypto'
import type { Persona } from '#databases/drivers/driver.ts'
import type { Plan } from '#databases/plan/plan.ts'
import type { Body } from '#databases/request/fields.ts'
import type { GatewayCaller } from '../caller.ts'
import { fail } from '../errors.ts'

/** One for each API key, client, user of the session and key of the caller's. */
export function keyOf(
  { client, grant, persona }: GatewayCaller,
  { keys }: { readonly keys: readonly string[] },
): string | undefined {
  const [key, other] = [...new Set(keys)]
  if (key === undefined) return undefined
  if (other !== undefined || !/^[\x20-\x7e]{1,255}$/.test(key))
    throw fail('invalid_idempotency_key', {
      hint: 'Idempotency-Key has 1 to 255 printable characters, and idempotency_key in the body says the same.',
    })
  const who = grant.kind === 'key' ? grant.key.publicId : grant.kind
  return hash(
    'sha256',
    JSON.stringify([client.name, who, key, ...(persona === undefined ? [] : [userOf(persona)])]),
  )
}

/** Undefined for who has no session. */
const userOf = ({ claims }: Persona): unknown => JSON.parse(claims).user_id

/** A transaction, as far as it decides what is done. */
type Digested = {
  readonly operations: readonly { readonly kind: string; readonly payload: Body }[]
  readonly options: object
  readonly stripNulls: boolean
}

/**
 * Rows that a caller may not see any more must not be replayed either: what is silenced is part of the body, and so is what policies
 * decide by. A new session of the same user is the same caller.
 */
export function digestOf(
  { persona }: GatewayCaller,
  { operations, options, stripNulls }: Digested,
  steps: readonly { readonly plan: Plan }[],
): string {
  const silenced = steps.map(({ plan }) => 'head' in plan && plan.head)
  const seenAs = persona && { role: persona.role, ...JSON.parse(persona.claims), session_id: null }
  // The ids are names for the answer, and change nothing of what is done.
  const done = operations.map(({ kind, payload }) => [kind, payload])
  return hash('sha256', JSON.stringify([done, options, stripNulls, silenced, seenAs]))
}
