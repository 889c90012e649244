-- Days on which attempts have failed since the last success: an endpoint is set inactive when they are spread over days (gateway.md 12).

alter table service.webhook
  add column failing_days integer not null default 0,
  add column last_failure_at timestamptz;
update service.webhook set failing_days = 1, last_failure_at = failing_since where failing_since is not null;
