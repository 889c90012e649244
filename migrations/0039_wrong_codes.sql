-- Wrong codes count for each known device and session by itself, and for strangers together (auth.md 7).
create table service.wrong_code (
  two_factor_id uuid not null references service.two_factor on delete cascade,
  -- 'strangers', 'device:ID', 'session:ID', or 'known': all devices and sessions together.
  counter text not null,
  -- Since the last right code or lock.
  failures integer not null,
  began_at timestamptz not null,
  locked_until timestamptz,
  constraint wrong_code_key primary key (two_factor_id, counter)
);
create index wrong_code_by_begin on service.wrong_code (began_at);

insert into service.wrong_code (two_factor_id, counter, failures, began_at, locked_until)
  select id, 'strangers', failures, now(), locked_until from service.two_factor where failures > 0 or locked_until is not null;

alter table service.two_factor drop column failures, drop column locked_until;
