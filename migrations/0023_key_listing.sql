-- The page of a listing of all keys, the keys that a removed client is in, and whether another admin is left, are found without reading
-- whole tables. Roles are joined by commas.
create index api_key_by_age on service.api_key (created_at, id);
create index api_key_by_override on service.api_key using gin (client_overrides);
create index user_admin on service."user" (id) where 'admin' = any (string_to_array(role, ','));
