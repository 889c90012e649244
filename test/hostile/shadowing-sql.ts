/**
 * SQL for an attack on unqualified names: a schema that precedes pg_catalog in the search path, with a shadow of every system function and type
 * that fails when it is called. `operators` lists types whose operators get shadows as well.
 */
export const shadowingSql = (operators: readonly string[]): string => `
create schema hostile;
create function hostile.called(what text) returns boolean language plpgsql as $$ begin raise exception 'shadow of %', what; end $$;
do $do$ declare shadow record;
begin
  for shadow in
    select p.proname, pg_get_function_identity_arguments(p.oid) as arguments, pg_get_function_result(p.oid) as result
    from pg_proc p where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind in ('f', 'a') and p.proname !~ '^(pg_stat|pg_ls|binary_upgrade|RI_)'
      and not (2276 = any (p.proargtypes::oid[])) and 2281 <> all (p.proargtypes::oid[]) and p.prorettype not in (2281, 2279, 3838)
  loop
    begin
      execute format('create function hostile.%I(%s) returns %s language plpgsql as $b$ begin perform hostile.called(%L); end $b$',
        shadow.proname, regexp_replace(shadow.arguments, ' ORDER BY .*$', ''), coalesce(shadow.result, 'void'), shadow.proname);
    exception when others then null;
    end;
  end loop;
  -- Shadows of functions with polymorphic arguments need exact types, to match better.
  foreach shadow.proname in array array['json_build_object', 'json_build_array', 'count', 'json_agg', 'to_json', 'row_to_json', 'concat', 'json_object_agg', 'jsonb_build_object'] loop
    for shadow in select shadow.proname, a.text as arguments, 'json' as result from unnest(array['text', 'text[]', 'timestamptz', 'timestamptz[]', 'json', 'text, text', 'text, json', 'text, text, text, text', 'jsonb']) as a(text) loop
      begin
        execute format('create function hostile.%I(%s) returns %s language plpgsql as $b$ begin perform hostile.called(%L); end $b$',
          shadow.proname, shadow.arguments, shadow.result, shadow.proname);
      exception when others then null;
      end;
    end loop;
  end loop;
  for shadow in
    select o.oprname, l.typname as left_type, r.typname as right_type, o.oid
    from pg_operator o join pg_type l on l.oid = o.oprleft join pg_type r on r.oid = o.oprright
    where o.oprnamespace = 'pg_catalog'::regnamespace and l.typname = any ('{${operators.join()}}') and r.typname = any ('{${operators.join()}}')
  loop
    execute format('create function hostile.%I(pg_catalog.%I, pg_catalog.%I) returns boolean language plpgsql as $b$ begin return hostile.called(%L); end $b$',
      'operator' || shadow.oid, shadow.left_type, shadow.right_type, shadow.oprname);
    execute format('create operator hostile.%s (leftarg = pg_catalog.%I, rightarg = pg_catalog.%I, function = hostile.%I)',
      shadow.oprname, shadow.left_type, shadow.right_type, 'operator' || shadow.oid);
  end loop;
  for shadow in
    select typname from pg_type where typnamespace = 'pg_catalog'::regnamespace and typtype = 'b' and typcategory <> 'A' and typname !~ '^(pg_|_)'
  loop
    begin
      execute format('create domain hostile.%I as pg_catalog.%I check (hostile.called(%L))', shadow.typname, shadow.typname, 'type ' || shadow.typname);
    exception when others then null;
    end;
  end loop;
end $do$;
grant usage on schema hostile to public;
do $do$ begin
  execute format('alter database %I set search_path = hostile, pg_catalog, public', current_database());
end $do$`
