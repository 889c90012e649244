-- Clients with live rows, as far as this service has made them live: only their databases are visited to delete old changes.
create table service.realtime_client (
  client_name text primary key,
  asked_at timestamptz not null
);
