import { isDeepStrictEqual } from 'node:util'
import type { Clients } from '#databases/clients/clients.ts'
import { requireAbility } from '#databases/drivers/abilities.ts'
import type { Management, RunQuery, SchemaStatements } from '#databases/drivers/management.ts'
import { tell } from '#identity/tell.ts'
import { Failure } from '#kernel/errors.ts'
import type { ClientCall, EventData, EventName } from '#kernel/events.ts'
import { emit, type Kernel } from '#kernel/kernel.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { requireWritable } from '../caller/caller-rights.ts'
import type { Grant } from '../caller/grant.ts'
import { fail } from '../errors.ts'
import type { PipelineRegistry } from '../pipelines/registry.ts'
import type { AuditLog } from './audit.ts'
import { requireCascadeRights } from './cascade-rights.ts'
import { type ChangeOperation, OPERATIONS } from './operations.ts'
import { visibleFailure } from './visible-failure.ts'

/** Changes of the structure by one caller. */
export type Changer = {
  readonly kernel: Kernel
  readonly caller: GatewayCaller
  /** The caller as it is now. Throws when the caller may not continue. */
  readonly renewed: () => Promise<GatewayCaller>
  readonly audit: AuditLog
  readonly clients: Clients
  readonly pipelines: PipelineRegistry
}

/** A change of one object. */
export type Change = {
  readonly operation: ChangeOperation
  readonly schema: string
  /** Name of the object. */
  readonly object: string
  /** The table that the change is about, whose values and columns a failure could tell. */
  readonly table?: string
  /** Emits the events of the change, after it was committed. */
  readonly announce: (emit: EmitChange) => Promise<void>
}

/** Emits an event of a change, with its client and request. */
export type EmitChange = <Name extends EventName>(
  name: Name,
  data: Omit<EventData[Name], keyof ClientCall>,
) => Promise<void>

export const managementOf = ({ backend }: GatewayCaller): Management => requireAbility(backend, 'management')

/**
 * The only way to change a client's structure: logged before and after, recorded in the audit trail, and announced by its events. When the
 * log cannot be written, nothing is changed (503). `ddl`: its statements, which the driver has written and nothing has run yet.
 */
export async function runAudited(
  changer: Changer,
  { operation, schema, object, table, announce }: Change,
  ddl: SchemaStatements,
): Promise<void> {
  const { kernel, caller, audit } = changer
  // Again, because the body may have taken long to arrive.
  requireWritable(caller.client)
  const client = caller.client.name
  const change = {
    requestId: caller.requestId,
    actorKeyId: actorIn(caller.grant),
    client,
    operation,
    schema,
    object,
    objectType: OPERATIONS[operation].object,
    statement: ddl.statements.join(';\n'),
    definition: ddl.definition,
  }
  await audit
    .around(change, () => apply(changer, ddl))
    .catch((error: unknown) => {
      throw visibleFailure(caller, error, { schema, table })
    })
  const act = { targetId: `${schema}.${object}`, clientName: client, details: { operation } }
  // The change is committed, so its caller gets the success. The audit log has its row.
  await tell(kernel, 'schema.changed', act).catch((error: unknown) => {
    kernel.metrics.count('gatehouse_audit_events_lost_total')
    kernel.log.error(
      { event: 'audit_event_lost', request_id: caller.requestId, error },
      'a change of a structure could not be written to the audit trail',
    )
  })
  const call: ClientCall = { client, request_id: caller.requestId }
  // With the members of a call, the data is whole again.
  await announce((name, data) => emit(kernel, name, { ...call, ...data } as EventData[typeof name]))
}

/** The id of the key, or of the user whose session operates. */
function actorIn(grant: Grant): string {
  if (grant.kind === 'key') return grant.key.id
  return grant.kind === 'session' ? grant.userId : ''
}

async function apply(changer: Changer, ddl: SchemaStatements): Promise<void> {
  let mayBeCommitted = false
  const check = async (query: RunQuery) => {
    await ddl.check?.(query)
    if (ddl.alsoDrops !== undefined) requireCascadeRights(changer.caller, await ddl.alsoDrops(query))
  }
  const verify = async (query: RunQuery) => {
    await ddl.verify?.(query)
    await requireStillPermitted(changer)
    mayBeCommitted = true
  }
  try {
    await managementOf(changer.caller).run(ddl.statements, { ...ddl, check, verify })
  } catch (error) {
    throw mayBeCommitted ? error : undone(error)
  }
}

/** Before COMMIT, a lost connection leaves nothing in doubt. */
const undone = (error: unknown): unknown =>
  error instanceof Failure && error.code === 'connection_lost'
    ? fail('connection_lost', {
        hint: 'Nothing was changed.',
        details: { changed: false },
        cause: error.cause,
      })
    : error

/** Before COMMIT: the change may have waited for the log or for a lock while its key was revoked or its client frozen. */
async function requireStillPermitted({ caller, renewed }: Changer): Promise<void> {
  const now = await renewed()
  requireWritable(now.client)
  // Rights to tables were required when the change was written, of the key and the client that there were.
  if (now.client !== caller.client || !isDeepStrictEqual(now.grant, caller.grant))
    throw fail('write_conflict')
}
