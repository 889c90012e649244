-- Keys that sign JSON web tokens. A key is published before it signs, and stays published until no token of it is valid any more.

create table service.jwt_key (
  -- `kid` in the header of a token and in the published set.
  id uuid primary key,
  algorithm text not null,
  state text not null,
  public_jwk jsonb not null,
  -- PKCS 8, sealed for this row. A key that signs no more has none.
  sealed_key text,
  created_at timestamptz not null,
  signing_at timestamptz,
  previous_at timestamptz,
  retired_at timestamptz,
  constraint jwt_key_algorithm check (algorithm in ('ES256', 'EdDSA')),
  constraint jwt_key_state check (state in ('standby', 'signing', 'previous', 'retired')),
  constraint jwt_key_sealed check (state in ('standby', 'signing') or sealed_key is null)
);
-- Whatever processes do at the same time: one key signs, and one is the next.
create unique index jwt_key_in_turn on service.jwt_key (state) where state in ('standby', 'signing');

create trigger jwt_key_came_or_went after insert or delete on service.jwt_key
  for each row execute function service.tell_word('jwt_key');
create trigger jwt_key_changed after update on service.jwt_key
  for each row when (old.* is distinct from new.*) execute function service.tell_word('jwt_key');
create trigger jwt_key_emptied after truncate on service.jwt_key execute function service.tell_word('all');

-- For a database that becomes another installation's, or whose secret is lost: its tokens are no one's any more. Returns the number of keys.
create function service.retire_jwt_keys() returns integer language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  retired integer;
begin
  update service.jwt_key set state = 'retired', sealed_key = null, retired_at = clock_timestamp() where state <> 'retired';
  get diagnostics retired = row_count;
  return retired;
end $$;
