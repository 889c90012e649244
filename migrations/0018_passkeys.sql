-- Passkeys: credentials of WebAuthn. Only public keys are stored.

create table service.passkey (
  id uuid primary key,
  user_id uuid not null references service."user" on delete cascade,
  name text,
  -- In base64url.
  credential_id text not null constraint passkey_credential_key unique,
  -- COSE key (RFC 9052) in base64.
  public_key text not null,
  -- Signature counter of the authenticator, 32 bits without sign; 0 if it has none.
  counter bigint not null,
  device_type text not null,
  backed_up boolean not null,
  -- Joined by commas.
  transports text not null,
  aaguid uuid not null,
  created_at timestamptz not null
);
create index passkey_by_user on service.passkey (user_id, created_at, id);
