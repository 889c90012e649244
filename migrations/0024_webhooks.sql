-- Webhooks, and the outbox from which they are delivered (gateway.md 12). An event is one row with the exact text that is
-- signed, and one delivery for each webhook that it matched. Both are written in the transaction that causes the event, or, after the
-- commit of a client's database, before the caller is answered.

create table service.webhook (
  id uuid primary key,
  -- Null: events of the authentication surface.
  client_name text,
  -- The name of an event, `gateway.*` and the like, or `*`.
  route_key text not null,
  -- schema.table
  table_name text,
  url text not null,
  description text,
  is_active boolean not null default true,
  -- Sealed (AES-256-GCM, v1.KEYID.DATA) for the id of the row. A JSON object.
  sealed_headers text,
  -- Null only after the removal.
  sealed_secret text,
  -- The secret before the last rotation: both sign until then.
  sealed_previous_secret text,
  previous_secret_until timestamptz,
  -- JSON of conditions on the rows of an event. Text, so that every digit of its numbers stays.
  filter text,
  timeout_ms integer not null,
  consecutive_failures integer not null default 0,
  failing_since timestamptz,
  disabled_reason text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- Removed, without secret and headers. The row goes when its deliveries are gone, which may be many.
  deleted_at timestamptz,
  constraint webhook_secret check (deleted_at is not null or sealed_secret is not null),
  constraint webhook_timeout check (timeout_ms between 1 and 30000)
);
create index webhook_by_age on service.webhook (created_at, id) where deleted_at is null;
create index webhook_by_client on service.webhook (client_name, created_at, id) where deleted_at is null;
create index webhook_removed on service.webhook (deleted_at) where deleted_at is not null;

create table service.webhook_event (
  -- UUIDv7, the header webhook-id.
  id uuid primary key,
  route_key text not null,
  -- JSON, as it is signed and sent.
  body text not null,
  created_at timestamptz not null
);
create index webhook_event_by_age on service.webhook_event (created_at);

create table service.webhook_delivery (
  -- UUIDv7
  id uuid primary key,
  webhook_id uuid not null references service.webhook (id),
  event_id uuid not null references service.webhook_event (id) on delete cascade,
  status text not null default 'pending',
  -- Attempts that were made.
  attempt integer not null default 0,
  -- Null: there is none.
  next_attempt_at timestamptz,
  -- The worker that has it must write the outcome until then; later another one may take it.
  claimed_until timestamptz,
  response_status integer,
  -- The first 4 KB.
  response_body text,
  error text,
  duration_ms integer,
  created_at timestamptz not null,
  constraint webhook_delivery_status check (status in ('pending', 'retrying', 'succeeded', 'failed', 'expired')),
  constraint webhook_delivery_next check ((status in ('pending', 'retrying')) = (next_attempt_at is not null))
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
create index webhook_delivery_due on service.webhook_delivery (webhook_id, next_attempt_at) where next_attempt_at is not null;
create index webhook_delivery_log on service.webhook_delivery (webhook_id, id desc);
create index webhook_delivery_failed on service.webhook_delivery (webhook_id, id desc) where status = 'failed';
create index webhook_delivery_by_event on service.webhook_delivery (event_id);

-- Not for the counters of failures, which change with each attempt and decide nothing about a match.
create trigger webhook_came_or_went after insert or delete on service.webhook
  for each row execute function service.tell_word('webhook');
create trigger webhook_changed after update of client_name, route_key, table_name, url, description, is_active, sealed_headers,
    sealed_secret, sealed_previous_secret, previous_secret_until, filter, timeout_ms, disabled_reason, updated_at, deleted_at on service.webhook
  for each row when (old.* is distinct from new.*) execute function service.tell_word('webhook');
create trigger webhook_emptied after truncate on service.webhook execute function service.tell_word('all');
