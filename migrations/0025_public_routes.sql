-- Public routes (gateway.md 13): the part of a client that is open to callers, with or without a key.

create table service.public_route (
  id uuid primary key,
  route_key text not null constraint public_route_route_key_key unique,
  client_name text not null,
  allowed_ops text[] not null,
  -- The only table, as it was given: table, or schema.table. Null: the body names it.
  table_name text,
  -- JSON of conditions. Text, so that every digit of its numbers stays.
  conditions text,
  columns text[],
  query text,
  requires_key boolean not null,
  run_as text not null,
  requests integer not null,
  window_seconds integer not null,
  allowed_origins text[] not null,
  is_active boolean not null,
  metadata jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint public_route_ops check (allowed_ops <@ '{query,fetch,insert,update,delete}'),
  constraint public_route_run_as check (run_as in ('caller', 'owner')),
  constraint public_route_query check (query is not null or not allowed_ops @> '{query}'),
  constraint public_route_anonymous check (requires_key or table_name is not null or allowed_ops <@ '{query}')
);
create index public_route_by_client on service.public_route (client_name);

create trigger public_route_gone after delete on service.public_route referencing old table as gone
  for each statement execute function service.tell_rows('public_route', 'id');
create trigger public_route_changed after update on service.public_route referencing old table as gone new table as came
  for each statement execute function service.tell_rows('public_route', 'id');
create trigger public_route_emptied after truncate on service.public_route execute function service.tell_word('all');
