/**
 * The events that the service emits after a commit: name → data. Families: `auth_…` (about a user, without a
 * client), `gateway_…` (a data operation on a client), `schema_…` (a change of a client's schema).
 */
export type EventData = {
  auth_user_created: { userId: string }
  auth_user_deleted: { userId: string }
  auth_user_banned: { userId: string }
  auth_user_signed_in: { userId: string; sessionId: string }
  auth_organization_created: { organizationId: string; userId: string }
  auth_organization_updated: { organizationId: string }
  auth_organization_deleted: { organizationId: string }
  auth_member_added: MemberEvent
  auth_member_removed: MemberEvent
  auth_member_role_changed: MemberEvent & { role: string }
  auth_invitation_created: { organizationId: string; invitationId: string }
  gateway_fetch: ClientOperation
  gateway_data: ClientOperation
  gateway_insert: ClientOperation
  gateway_update: ClientOperation
  gateway_delete: ClientOperation
  gateway_query: ClientCall
  gateway_rpc: ClientCall & { function: string }
  schema_table_created: SchemaChange
}

export type EventName = keyof EventData

export type MemberEvent = { organizationId: string; userId: string }
export type ClientOperation = { client: string; requestId: string; table: string; rows: number }
export type ClientCall = { client: string; requestId: string; rows: number }
export type SchemaChange = { client: string; requestId: string; schema: string; table: string }

type Listener = (name: EventName, data: EventData[EventName]) => void

export type Events = {
  emit<Name extends EventName>(name: Name, data: EventData[Name]): void
  subscribe(listener: Listener): void
}

export function createEvents(): Events {
  const listeners: Listener[] = []
  return {
    emit: (name, data) => {
      for (const listener of listeners) listener(name, data)
    },
    subscribe: (listener) => void listeners.push(listener),
  }
}
