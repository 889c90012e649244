import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readsOfExpression } from '#databases/drivers/postgres/sql/policies/reads.ts'

const USER = `((current_setting('request.claims'::text, true))::json ->> 'user_id'::text)`

for (const [text, claims, tables] of [
  ['true', [], []],
  [`(user_id = (${USER})::uuid)`, ['user_id'], []],
  [
    `(user_id = ((NULLIF(current_setting('request.claims'::text, true), ''::text))::jsonb ->> 'user_id'::text))`,
    ['user_id'],
    [],
  ],
  [
    `(organization_id = (((current_setting('request.claims'::text))::json ->> 'organization_id'::text))::uuid) AND (state = 'open'::public.state)`,
    ['organization_id'],
    [],
  ],
  [
    `(EXISTS ( SELECT 1 FROM (public.member m JOIN sales."order" o ON ((o.id = m.order_id))) WHERE ((m.user_id)::text = ${USER}) AND (m.doc_id = doc.id)))`,
    ['user_id'],
    ['public.member', 'sales.order'],
  ],
  [`(current_setting('request.claims'::text, true) ~~ '%admin%'::text)`, 'all', []],
  [
    `((((current_setting('request.jwt.claims'::text, true))::json ->> 'sub'::text))::uuid = user_id)`,
    'all',
    [],
  ],
  ['(owner = CURRENT_USER)', [], []],
  [`(id IN ( SELECT member.doc_id FROM public.member))`, [], ['public.member']],
  [
    `(lower((title)::text) = ANY (ARRAY['a'::text, 'b'::text])) OR (NOT hidden) OR (COALESCE(a, b) IS NOT NULL)`,
    [],
    [],
  ],
  [
    `CASE WHEN open THEN (created_at < '2026-01-01 00:00:00+00'::timestamp with time zone) ELSE false END`,
    [],
    [],
  ],
  [`(date_part('year'::text, created_at) = (2026)::double precision)`, [], []],
] as const)
  test(`a policy reads what it names: ${text.slice(0, 80)}`, async () => {
    const reads = await readsOfExpression(text)
    assert.ok(reads)
    assert.deepEqual(reads.claims === 'all' ? 'all' : [...reads.claims], claims)
    assert.deepEqual(
      reads.tables.map(({ schema, table }) => `${schema}.${table}`),
      tables,
    )
  })

for (const text of [
  '(now() > expires_at)', '(CURRENT_TIMESTAMP > expires_at)', '(CURRENT_DATE > day)', 'LOCALTIMESTAMP > at', '(clock_timestamp() > at)', '(random() > 0.5)',
  '(age(created_at) < \'1 day\'::interval)', '(statement_timestamp() > at)', `((${USER})::timestamp with time zone > at)`, 'auth.uid() = user_id', 'public.may_see(id)', 'may_see(id)',
  `(current_setting('app.user'::text) = owner)`, '(current_setting(owner) = owner)', '(a OPERATOR(public.=) b)', '(EXISTS ( SELECT 1 FROM member))',
  '(EXISTS ( WITH x AS (SELECT 1) SELECT 1 FROM public.member))', '(EXISTS ( SELECT 1 FROM public.member TABLESAMPLE system (1)))', '(EXISTS ( SELECT 1 FROM generate_series(1, 3)))',
  '(EXISTS ( SELECT nextval(\'s\'::regclass) FROM public.member))', '(pg_backend_pid() = 1)', '(SESSION_USER = owner)', '(inet_client_addr() IS NULL)', '(txid_current() > 1)',
  'true; select 1', '', 'not valid (',
]) // biome-ignore format: a table
  test(`nothing is known of: ${text.slice(0, 80)}`, async () =>
    assert.equal(await readsOfExpression(text), undefined))
