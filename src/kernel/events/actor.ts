import { ADMIN_KEY, ANONYMOUS, CLI, OF_ISSUER, SYSTEM } from '../audit/origin.ts'

/** The cause of an event (gateway.md 12). Only users, those of other issuers (`jwt`) and API keys have ids. */
export type Actor = { readonly kind: ActorKind; readonly id: string | null }

export const ACTOR_KINDS = ['user', 'jwt', 'api_key', 'admin_key', 'cli', 'system', 'anonymous'] as const
type ActorKind = (typeof ACTOR_KINDS)[number]

const WORDS: ReadonlyMap<string, ActorKind> = new Map([
  [ADMIN_KEY, 'admin_key'],
  [CLI.actorId, 'cli'],
  [SYSTEM.actorId, 'system'],
  [ANONYMOUS, 'anonymous'],
])

/** The prefix of API keys in the audit trail. */
const KEY = 'key:'

/** The actor, from its name in the audit trail. */
export function actorNamed(actorId: string): Actor {
  if (actorId.startsWith(KEY)) return { kind: 'api_key', id: actorId.slice(KEY.length) }
  if (actorId.startsWith(OF_ISSUER)) return { kind: 'jwt', id: actorId.slice(OF_ISSUER.length) }
  const kind = WORDS.get(actorId)
  return kind === undefined ? { kind: 'user', id: actorId } : { kind, id: null }
}
