-- A plan from the time when the table was small reads all of it, until the server analyses it. This one looks the deliveries up by id.
create function service.write_outcomes(
  ids uuid[], leases timestamptz[], statuses text[], attempts integer[], next_attempts timestamptz[], response_statuses integer[],
  response_bodies text[], errors text[], durations integer[]
) returns table (id uuid, is_failing boolean) language plpgsql
  set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
begin
  return query
    update service.webhook_delivery d
    set status = o.status, attempt = o.attempt, next_attempt_at = o.next_attempt_at, claimed_until = null,
      response_status = o.response_status, response_body = o.response_body, error = o.error, duration_ms = o.duration_ms
    from unnest(ids, leases, statuses, attempts, next_attempts, response_statuses, response_bodies, errors, durations)
      as o (id, claimed_until, status, attempt, next_attempt_at, response_status, response_body, error, duration_ms)
    where d.id = o.id and d.claimed_until = o.claimed_until
    returning d.id, exists (select from service.webhook w where w.id = d.webhook_id and w.failing_since is not null);
end $$;
