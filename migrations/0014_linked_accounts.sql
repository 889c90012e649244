-- Accounts at identity providers, with the tokens that the provider issued. Tokens are sealed (kernel/secrets.ts).

alter table service.account
  add column sealed_access_token text,
  add column sealed_refresh_token text,
  add column sealed_id_token text,
  add column token_type text,
  -- Scopes that the provider granted.
  add column scopes text[] not null default '{}',
  add column access_token_expires_at timestamptz,
  add column refresh_token_expires_at timestamptz,
  -- Until then one process asks the provider for new tokens, and the others wait for it.
  add column refreshing_until timestamptz;
