import pg from 'pg'
import { databaseIdentity } from '#kernel/db/database-identity.ts'
import { onConnection } from '#kernel/db/guarded-client.ts'
import { takeSessionLock } from '#kernel/db/session-lock.ts'

const LOCK = { name: 'lock of the log tables', key: `hashtextextended('gatehouse logging', 0)` }

/** Creates the log and audit tables that are missing (gateway.md 9 and 10), and grants the reader access. Returns which database it is. */
export async function prepareLogging(
  ownerUrl: string,
  reader: string | undefined,
): Promise<string | undefined> {
  return onConnection({ url: ownerUrl, name: 'logging' }, async (client) => {
    await takeSessionLock(client, LOCK)
    await client.query([DATABASE_AUDIT, FUNCTION_AUDIT, PIPELINE_STEPS, OPTIONAL_REQUEST_ID].join('\n'))
    if (reader !== undefined) await grantRead(client, reader)
    return databaseIdentity(client)
  })
}

/** Common to both audit tables. */
const AUDIT_COLUMNS = `
  id bigint generated always as identity primary key,
  created_at timestamptz not null,
  request_id text,
  actor_key_id text,
  service_client text not null,
  operation text not null,
  schema_name text not null,
  object_name text not null,
  object_type text not null,
  statement text not null,
  status text not null,
  error_message text,
  duration_ms bigint,
  details jsonb not null default '{}'`

const DATABASE_AUDIT = `
  create table if not exists public.database_audit_log (${AUDIT_COLUMNS});
  create index if not exists database_audit_log_by_time on public.database_audit_log (created_at);
  create index if not exists database_audit_log_by_object
    on public.database_audit_log (service_client, schema_name, object_name, id);`

const FUNCTION_AUDIT = `
  create table if not exists public.function_ddl_audit_log (${AUDIT_COLUMNS},
    function_signature text,
    definition_before text,
    definition_after text
  );
  create index if not exists function_ddl_audit_log_by_time on public.function_ddl_audit_log (created_at);
  create index if not exists function_ddl_audit_log_by_object
    on public.function_ddl_audit_log (service_client, schema_name, object_name, id);`

/** A run has at most one row for each step: a job that is repeated adds none. */
const PIPELINE_STEPS = `
  create table if not exists public.pipeline_step_log (
    id bigint generated always as identity primary key,
    created_at timestamptz not null,
    pipeline_run_id uuid not null,
    request_id text,
    pipeline_name text,
    step text not null check (step in ('source', 'transform', 'sink')),
    service_client text not null,
    table_name text,
    status_code int not null,
    duration_ms bigint not null,
    error_message text,
    details jsonb not null default '{}',
    unique (pipeline_run_id, step)
  );
  create index if not exists pipeline_step_log_by_time on public.pipeline_step_log (created_at);
  create index if not exists pipeline_step_log_by_name on public.pipeline_step_log (pipeline_name, id);`

/** The id of a request was required once. Only where it still is, because the change locks the table. */
const OPTIONAL_REQUEST_ID = `
  do $$ declare log regclass; begin
    for log in select attrelid::regclass from pg_attribute where attname = 'request_id' and attnotnull and attrelid in
      ('public.database_audit_log'::regclass, 'public.function_ddl_audit_log'::regclass, 'public.pipeline_step_log'::regclass)
    loop execute format('alter table %s alter column request_id drop not null', log); end loop;
  end $$;`

async function grantRead(client: pg.Client, reader: string): Promise<void> {
  const { rows } = await client.query<{ name: string }>('select current_database() as name')
  const role = pg.escapeIdentifier(reader)
  await client.query(`
    grant connect on database ${pg.escapeIdentifier(rows[0]?.name ?? '')} to ${role};
    grant usage on schema public to ${role};
    grant select on all tables in schema public to ${role};
    alter default privileges in schema public grant select on tables to ${role};`)
}
