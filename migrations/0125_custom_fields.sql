-- Fields of users besides the built-in ones (auth.user.fields): name → value, without nulls. Null for a user who has none.
alter table service."user" add column fields jsonb;

-- Values of unique fields that a sign-up with the address of an account has chosen (0007).
alter table service.hidden_sign_up add column fields jsonb;

-- The fields that are unique by the configuration of the last start.
create table service.unique_field (
  name text primary key
);

-- Their values. A value belongs to one user or one hidden sign-up.
create table service.unique_field_value (
  name text not null references service.unique_field on delete cascade,
  value jsonb not null,
  user_id uuid references service."user" on delete cascade,
  hidden_sign_up_id uuid references service.hidden_sign_up on delete cascade,
  primary key (name, value),
  check (num_nonnulls(user_id, hidden_sign_up_id) = 1)
);
create index unique_field_value_of_user on service.unique_field_value (user_id);
create index unique_field_value_of_hidden_sign_up on service.unique_field_value (hidden_sign_up_id);

-- The values are inserted in the order of their names, so that two sign-ups do not deadlock. The column of the error is the field.
create function service.keep_unique_fields() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  taken text;
  is_hidden boolean := tg_table_name = 'hidden_sign_up';
begin
  if tg_op = 'UPDATE' then
    delete from service.unique_field_value where user_id = new.id;
  end if;
  insert into service.unique_field_value (name, value, user_id, hidden_sign_up_id)
    select name, new.fields -> name, case when not is_hidden then new.id end, case when is_hidden then new.id end
    from service.unique_field where new.fields ? name order by name
    on conflict do nothing;
  select name into taken from service.unique_field u where new.fields ? u.name and not exists (
    select from service.unique_field_value v where v.name = u.name and v.value = new.fields -> u.name
      and coalesce(v.user_id, v.hidden_sign_up_id) = new.id
  ) order by name limit 1;
  if taken is not null then
    raise unique_violation using message = 'the value of a field is taken', constraint = 'unique_field_value_pkey', column = taken;
  end if;
  return null;
end $$;
create trigger unique_fields_added after insert on service."user"
  for each row when (new.fields is not null) execute function service.keep_unique_fields();
create trigger unique_fields_changed after update of fields on service."user"
  for each row when (old.fields is distinct from new.fields) execute function service.keep_unique_fields();
create trigger unique_fields_added after insert on service.hidden_sign_up
  for each row when (new.fields is not null) execute function service.keep_unique_fields();
