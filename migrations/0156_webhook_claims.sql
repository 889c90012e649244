-- A claim changes no column of an index, so the row stays on its page, and no index gets an entry (HOT). The settings keep the order of the
-- index, also in a plan from the time when the table was small: the claim reads as many rows as it takes, and those that others have.
create function service.claim_deliveries(
  webhooks uuid[], rooms integer[], due_from timestamptz[], at timestamptz, lease_margin interval, longest_lease interval, max_body integer
) returns table (
  id uuid, webhook_id uuid, event_id uuid, attempt integer, due_at timestamptz, claimed_until timestamptz, body text
) language plpgsql set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
begin
  return query
    with due as (
      select found.id from unnest(webhooks, rooms, due_from) as request (webhook_id, room, due_from)
      join service.webhook w on w.id = request.webhook_id and w.is_active and w.deleted_at is null
      cross join lateral (
        select d.id from service.webhook_delivery d
        where d.webhook_id = w.id and d.next_attempt_at between request.due_from and at
          -- A longer lease is of a time before the clock was set back.
          and (d.claimed_until is null or d.claimed_until <= at or d.claimed_until > at + longest_lease)
        order by d.next_attempt_at limit request.room
        for update skip locked
      ) found
    )
    update service.webhook_delivery d
    set claimed_until = at + w.timeout_ms * interval '1 millisecond' + lease_margin
    from service.webhook w, service.webhook_event e
    where d.id = any (array(select due.id from due)) and w.id = d.webhook_id and e.id = d.event_id
    returning d.id, d.webhook_id, d.event_id, d.attempt, d.next_attempt_at, d.claimed_until,
      case when octet_length(e.body) <= max_body then e.body end;
end $$;

-- Room for a claim of a whole page before the versions that it replaces can be removed.
alter table service.webhook_delivery set (fillfactor = 50);
