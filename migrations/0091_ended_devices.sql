-- When the user last ended all known devices. An identifier from before does not come back because another account knows it, too: that account may
-- be the thief's. `created_at` of a known device is since now the birth of its identifier, whichever account was the first.
alter table service."user" add column devices_ended_at timestamptz;
update service.known_device d set created_at = first.at
  from (select device_hash, min(created_at) as at from service.known_device group by device_hash) first
  where first.device_hash = d.device_hash and d.created_at > first.at;
