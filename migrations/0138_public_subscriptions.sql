-- A public route may let its callers follow its rows (gateway.md 20).
alter table service.public_route drop constraint public_route_ops;
alter table service.public_route add constraint public_route_ops
  check (allowed_ops <@ '{query,fetch,insert,update,delete,subscribe}');
