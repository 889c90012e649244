-- When route keys, client or table of a webhook have changed: deliveries of before may have data that it does not get any more. Null: never.
alter table service.webhook add column reach_changed_at timestamptz;
-- Unknown for those that were changed.
update service.webhook set reach_changed_at = updated_at where updated_at > created_at;
