-- Administrators list what was done in an organization, to its members too (auth.md 10).
create index audit_event_by_organization on service.audit_event (organization_id, id) where organization_id is not null;
