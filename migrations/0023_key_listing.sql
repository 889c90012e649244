-- The page of a listing of all keys, and the keys that a removed client is in, are found without reading the whole table.
create index api_key_by_age on service.api_key (created_at, id);
create index api_key_by_override on service.api_key using gin (client_overrides);
