-- Built-in clients whose row-level security was switched on over HTTP, since no setting decides about it. Only the setting switches it off.
create table service.protected_client (
  client_name text primary key,
  protected_at timestamptz not null
);

create trigger protected_client_came_or_went after insert or delete on service.protected_client
  for each row execute function service.tell_word('protected_client');
create trigger protected_client_changed after update on service.protected_client
  for each row when (old.* is distinct from new.*) execute function service.tell_word('protected_client');
create trigger protected_client_emptied after truncate on service.protected_client execute function service.tell_word('all');
