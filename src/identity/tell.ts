import type { Action } from '#kernel/audit/actions.ts'
import {
  type Act,
  type AuditRecord,
  auditRecord,
  type Recorder,
  recordAct,
  recordActs,
} from '#kernel/audit/record-act.ts'
import { emit, type Kernel } from '#kernel/kernel.ts'

type OfUser = Act & { readonly targetId: string }
type OfMember = OfUser & { readonly organizationId: string }
type OfSession = OfUser & { readonly details: { readonly sessionId: string } }
type OfOwner = OfUser & { readonly details: { readonly owner: string } }

/** The acts of accounts and organizations that webhooks hear of, each with its event. */
const EVENTS = {
  'user.created': (kernel: Kernel, { targetId }: OfUser) =>
    emit(kernel, 'auth_user_created', { user_id: targetId }),
  'user.upgraded': (kernel: Kernel, { targetId }: OfUser) =>
    emit(kernel, 'auth_user_upgraded', { user_id: targetId }),
  'user.deleted': (kernel: Kernel, { targetId }: OfUser) =>
    emit(kernel, 'auth_user_deleted', { user_id: targetId }),
  'user.banned': (kernel: Kernel, { targetId }: OfUser) =>
    emit(kernel, 'auth_user_banned', { user_id: targetId }),
  'user.signed_in': (kernel: Kernel, { targetId, details: { sessionId } }: OfSession) =>
    emit(kernel, 'auth_user_signed_in', { user_id: targetId, session_id: sessionId }),
  'organization.created': (kernel: Kernel, { targetId, details: { owner } }: OfOwner) =>
    emit(kernel, 'auth_organization_created', { organization_id: targetId, user_id: owner }),
  'organization.deleted': (kernel: Kernel, { targetId }: OfUser) =>
    emit(kernel, 'auth_organization_deleted', { organization_id: targetId }),
  'member.added': (kernel: Kernel, { targetId, organizationId }: OfMember) =>
    emit(kernel, 'auth_member_added', { organization_id: organizationId, user_id: targetId }),
  'member.removed': (kernel: Kernel, { targetId, organizationId }: OfMember) =>
    emit(kernel, 'auth_member_removed', { organization_id: organizationId, user_id: targetId }),
} satisfies { readonly [A in Action]?: (kernel: Kernel, act: never) => Promise<void> }

/** The facts of an act; those that its event needs are required. */
type ActOf<A extends Action> = A extends keyof typeof EVENTS ? Parameters<(typeof EVENTS)[A]>[1] : Act

/** A command that runs without the service tells of acts without an event. */
type Teller<A extends Action> = (A extends keyof typeof EVENTS ? Kernel : Recorder) & Pick<Kernel, 'notes'>

/** Writes the act into the audit trail, and its event, if it has one, into the outbox of the webhooks. Call it in the transaction that acts. */
export async function tell<A extends Action>(kernel: Teller<A>, action: A, act: ActOf<A>): Promise<void> {
  await recordAct(kernel, action, act)
  await emitFor(kernel, action, act)
}

/**
 * The same where a statement of the act writes the row of the trail itself (`insertRecords`). `emitEvent` writes the event, after that statement.
 */
export const tellWithin = <A extends Action>(
  kernel: Teller<A>,
  action: A,
  act: ActOf<A>,
): { readonly record: AuditRecord; readonly emitEvent: () => Promise<void> } => ({
  record: auditRecord(kernel, action, act),
  emitEvent: () => emitFor(kernel, action, act),
})

async function emitFor<A extends Action>(kernel: Teller<A>, action: A, act: ActOf<A>): Promise<void> {
  const events: { readonly [A in Action]?: (kernel: never, act: never) => Promise<void> } = EVENTS
  // The types of the arguments are those of this action.
  await events[action]?.(kernel as never, act as never)
}

/** The same for many acts of one kind, with one statement for all rows of the trail. */
export async function tellAll<A extends Action>(
  kernel: Teller<A>,
  action: A,
  acts: readonly ActOf<A>[],
): Promise<void> {
  await recordActs(kernel, action, acts)
  for (const act of acts) await emitFor(kernel, action, act)
}

/** The same for a change that may have changed nothing. */
export async function tellChange<A extends Action>(
  kernel: Teller<A>,
  action: A,
  fields: readonly string[],
  act: ActOf<A>,
): Promise<void> {
  await (fields.length > 0 ? tell(kernel, action, act) : untold(kernel, 'nothing has changed'))
}

/** Says why an act is not told. */
export function untold({ notes }: Pick<Kernel, 'notes'>, reason: string): void {
  if (notes !== undefined) notes.untold = reason
}
