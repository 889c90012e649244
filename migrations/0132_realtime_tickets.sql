-- Tickets of streams of live rows (gateway.md 20), which browsers put into an address. The caller is judged by the same headers as at the issue, so
-- that a ticket proves nothing by itself once its session or key has ended.
create table service.realtime_ticket (
  -- SHA-256 of the ticket.
  ticket_hash bytea primary key,
  -- Headers that prove the caller.
  sealed text not null,
  -- The tables that are followed. As text: numbers of conditions keep every digit.
  body text not null,
  -- The first use; it is the only one without the id of an event.
  used_at timestamptz,
  expires_at timestamptz not null
);
create index realtime_ticket_by_expiry on service.realtime_ticket (expires_at);
