-- When what was sealed without an owner was first bound to its row (bind-sealed.ts). Null: not yet.
alter table service.installation add column sealed_for_owners_at timestamptz;
