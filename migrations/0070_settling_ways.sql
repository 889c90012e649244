-- A session that has shown no proof for ten minutes, and has perhaps been stolen, still adds a passkey or an account of a provider. Until this
-- time such a way in is no proof of its own (auth.md 2, decision 52). Null: it was added with a proof, or by no session.
alter table service.passkey add column settles_at timestamptz;
alter table service.account add column settles_at timestamptz;
