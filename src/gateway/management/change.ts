import { isDeepStrictEqual } from 'node:util'
import { requireAbility } from '#databases/drivers/abilities.ts'
import type { Management, RunQuery, SchemaStatements } from '#databases/drivers/management.ts'
import { recordAct } from '#kernel/audit/record-act.ts'
import type { ClientCall, EventData, EventName } from '#kernel/events.ts'
import { emit, type Kernel } from '#kernel/kernel.ts'
import type { GatewayCaller } from '../caller.ts'
import { requireThawed } from '../caller-rights.ts'
import { fail } from '../errors.ts'
import type { AuditLog } from './audit.ts'
import { type ChangeOperation, OPERATIONS } from './operations.ts'
import { visibleFailure } from './visible-failure.ts'

/** Changes of the structure by one caller. */
export type Changer = {
  readonly kernel: Kernel
  readonly caller: GatewayCaller
  /** The caller as it is now. Throws when the caller may not continue. */
  readonly renewed: () => Promise<GatewayCaller>
  readonly audit: AuditLog
}

/** A change of one object. */
export type Change<O extends ChangeOperation> = {
  readonly operation: O
  readonly schema: string
  /** Name of the object. */
  readonly object: string
  /** What the event tells besides client and request; a function where the change itself finds it out. */
  readonly event: EventOf<O> | (() => EventOf<O>)
  /** Further events of the same change. */
  readonly further?: readonly FurtherEvent[]
  /** The table that the change is about, whose values and columns a failure could tell. */
  readonly table?: string
}

type EventOf<O extends ChangeOperation> = Omit<EventData[(typeof OPERATIONS)[O]['event']], keyof ClientCall>

type FurtherEvent = {
  [Name in EventName]: readonly [name: Name, data: Omit<EventData[Name], keyof ClientCall>]
}[EventName]

export const managementOf = ({ backend }: GatewayCaller): Management => requireAbility(backend, 'management')

/**
 * The only way to change a client's structure: logged before and after, recorded in the audit trail, and announced by its event. When the
 * log cannot be written, nothing is changed (503). `written` is what the driver has written for the change.
 */
export async function audited<O extends ChangeOperation>(
  changer: Changer,
  { operation, schema, object, table, event, further = [] }: Change<O>,
  written: SchemaStatements,
): Promise<void> {
  const { kernel, caller, audit } = changer
  // Again, because the body may have taken long to arrive.
  requireThawed(caller.client)
  const client = caller.client.name
  const { event: eventName, object: objectType } = OPERATIONS[operation]
  const change = {
    requestId: caller.requestId,
    actorKeyId: caller.grant.kind === 'key' ? caller.grant.key.id : '',
    client,
    operation,
    schema,
    object,
    objectType,
    statement: written.statements.join(';\n'),
    definition: written.definition,
  }
  const verify = async (query: RunQuery) => {
    await written.verify?.(query)
    await requireStillPermitted(changer)
  }
  const work = () => managementOf(caller).run(written.statements, { ...written, verify })
  await audit.around(change, work).catch((error: unknown) => {
    throw visibleFailure(caller, error, { schema, table })
  })
  const act = { targetId: `${schema}.${object}`, clientName: client, details: { operation } }
  // The change is committed, so its caller gets the success. The audit log has its row.
  await recordAct(kernel, 'schema.changed', act).catch((error: unknown) => {
    kernel.metrics.count('gatehouse_audit_events_lost_total')
    kernel.log.error(
      { event: 'audit_event_lost', request_id: caller.requestId, error },
      'a change of a structure could not be written to the audit trail',
    )
  })
  // Name and data of `own` are those of the operation.
  const own = [eventName, typeof event === 'function' ? event() : event] as unknown as FurtherEvent
  for (const [name, data] of [own, ...further])
    await emit(kernel, name, { client, request_id: caller.requestId, ...data } as EventData[typeof name])
}

/** Before COMMIT: the change may have waited for the log or for a lock while its key was revoked or its client frozen. */
async function requireStillPermitted({ caller, renewed }: Changer): Promise<void> {
  const now = await renewed()
  requireThawed(now.client)
  // Rights to tables were required when the change was written, of the key and the client that there were.
  if (now.client !== caller.client || !isDeepStrictEqual(now.grant, caller.grant))
    throw fail('write_conflict')
}
