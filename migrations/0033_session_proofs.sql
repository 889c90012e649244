-- What a session has shown, and what its user had when it began (auth.md 2). A session from before this migration has shown nothing.

alter table service.session
  -- What was shown, in the order of the first time: see identity/shown.ts.
  add column shown text[] not null default '{}',
  -- The last proof. Null: none.
  add column auth_time timestamptz,
  add column password_shown_at timestamptz,
  add column factor_shown_at timestamptz,
  -- What the user could have shown when the session began, in the same words.
  add column user_had text[] not null default '{}';

-- The ways in and the factors of a user, in the words of the two columns above.
create function service.methods_of(of_user uuid) returns text[] language sql stable set search_path = pg_catalog, pg_temp as $$
  select array(
    select case a.provider_id when 'credential' then 'password' else 'provider:' || a.provider_id end
      from service.account a where a.user_id = of_user and (a.provider_id <> 'credential' or a.password is not null)
    union select 'passkey' from service.passkey p where p.user_id = of_user
    union select f.method from service.two_factor f where f.user_id = of_user and f.in_force)
$$;
