import pg from 'pg'
import { onConnection } from './guarded-client.ts'
import { provision } from './provision.ts'
import { takeSessionLock } from './session-lock.ts'

type Owner = {
  /** The role that becomes the owner. It cannot log in. */
  readonly role: string
  readonly installation: string
}

const LOCK = { name: 'lock of the audit trail', key: `hashtextextended('gatehouse audit owner', 0)` }

/**
 * Gives the audit trail to a role of its own (auth.md 10, decision 39), once: the role of the control database keeps SELECT, INSERT and
 * the counting of failures, and cannot alter the table or its functions. `url` is that of a role that may create roles.
 */
export async function separateAuditOwner(url: string, { role, installation }: Owner): Promise<void> {
  await onConnection({ url, name: 'audit owner', deadline: PATIENCE }, async (client) => {
    await takeSessionLock(client, LOCK)
    const control = await controlRoleWithTrail(client)
    if (control === undefined) return
    await provision(url, { roles: [{ name: role }], databases: [], installation })
    await client.query(transfer(pg.escapeIdentifier(role), pg.escapeIdentifier(control)))
  })
}

/** Milliseconds. */
const PATIENCE = 60_000

/** The owner of the schema, if the trail is still its own. */
async function controlRoleWithTrail(client: pg.Client): Promise<string | undefined> {
  const { rows } = await client.query<{ control: string }>(
    `select pg_get_userbyid(n.nspowner) as control from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.oid = to_regclass('service.audit_event') and c.relowner = n.nspowner`,
  )
  return rows[0]?.control
}

/** The membership that a role without superuser rights needs for this ends with it. */
const transfer = (role: string, control: string) => `
  begin;
  grant usage, create on schema service to ${role};
  alter function service.first_id_at(timestamptz) owner to ${role};
  alter function service.refuse_audit_change() owner to ${role};
  alter function service.prune_audit_events(interval, integer) owner to ${role};
  alter table service.audit_event owner to ${role};
  revoke create on schema service from ${role};
  set local role ${role};
  grant select, insert, update (count) on service.audit_event to ${control};
  revoke execute on function service.prune_audit_events(interval, integer) from public;
  grant execute on function service.prune_audit_events(interval, integer) to ${control};
  reset role;
  revoke ${role} from ${control};
  commit`
