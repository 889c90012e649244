import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readsOfFunction } from '#databases/drivers/postgres/sql/policies/function-reads.ts'

for (const [body, claims] of [
  [`select (current_setting('request.claims', true)::json ->> 'user_id')::uuid`, ['user_id']],
  [
    `select nullif(current_setting('request.claims', true), '')::jsonb ->> 'organization_id';`,
    ['organization_id'],
  ],
  [`select (((current_setting('request.claims'::text))::json -> 'a'::text) ->> 'b'::text)`, ['a']],
  [`SELECT coalesce((current_setting('request.claims', true)::json ->> 'role') , 'none')`, ['role']],
  [`select current_setting('request.claims', true)::jsonb`, 'all'],
  [`select (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')::uuid`, 'all'],
  [
    `\n  select coalesce(\n nullif(current_setting('request.jwt.claim.sub', true), ''),
    (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')\n )::uuid\n`,
    'all',
  ],
  [`select 'fixed'::text`, []],
] as const)
  test(`a function reads the claims that it names: ${body.slice(0, 80)}`, async () => {
    const reads = await readsOfFunction(body)
    assert.deepEqual(reads === 'all' || reads === undefined ? reads : [...reads], claims)
  })

for (const body of [
  '', 'begin return 1; end', 'select 1; select 2', 'select now()', 'select current_user', 'select id from public.member',
  `select current_setting('app.user', true)`, `select current_setting('request.jwt.claim.sub', true) || now()::text`, `select auth.jwt() ->> 'sub'`,
  `select current_setting('request.claims', true)::json ->> current_setting('x')`, `select lower(current_setting('request.claims'))`, `select $1`,
  `select current_setting('request.claims')::json operator(public.->>) 'user_id'`, `select current_setting('request.claims')::public.json`,
  `select public.current_setting('request.claims')`, `select current_setting(lower('request.claims'))`, `select (current_setting('request.claims')::json ->> 'at')::timestamptz`,
  `select current_setting('request.claims') = 'x'`, `select nullif((current_setting('request.claims')::json ->> 'user_id')::uuid, 'x'::text)`,
  `select nullif(current_setting('request.claims')::jsonb, 'x') ->> 'user_id'`, `select nullif(current_setting('request.claims'), 1)`, `insert into t values (1)`, `select array[current_setting('request.claims')]::json[]`,
]) // biome-ignore format: a table
  test(`nothing is known of a function: ${body.slice(0, 80)}`, async () =>
    assert.equal(await readsOfFunction(body), undefined))
