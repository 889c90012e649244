-- When the user showed by a mail that the address is theirs (auth.md 4). `email_verified` may also come from an admin or a provider.

alter table service."user" add column email_proven_at timestamptz;

-- Who said so is not known of older rows.
update service."user" set email_proven_at = now() where email_verified;
