-- A key may be issued for a client that is not registered yet, but for none that was removed, whose row stays.
create index database_client_by_name on service.database_client (client_name);
