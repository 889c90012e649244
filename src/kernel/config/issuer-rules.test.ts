import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stringify } from 'yaml'
import { complaints, load, withoutSources } from '#test/configuration.ts'
import { maskedConfig } from './config.ts'

type Settings = Readonly<Record<string, unknown>>

const ISSUER = { issuer: 'https://id.example.com', audience: ['https://api.example.com'] }
const withSecurity = (row_level_security: Settings, more: Settings = {}) => ({
  yaml: stringify({ ...more, clients: { app: { url: 'postgres://app:p@db/x', row_level_security } } }),
})
/** The problems of issuers, without file and line. */
const problems = (issuers: unknown, more: Settings = {}) =>
  complaints(withSecurity({ enabled: true, issuers }, more)).map((line) =>
    line.replace(/^gatehouse\.yaml:\d+ clients\.app\.row_level_security\./, ''),
  )

test('an issuer with an audience or a party is enough', () => {
  assert.deepEqual(problems([ISSUER]), [])
  assert.deepEqual(problems([{ issuer: ISSUER.issuer, authorized_parties: ['app'] }]), [])
  const [line] = problems([{ issuer: ISSUER.issuer }])
  assert.match(line ?? '', /^issuers\[0\]\.audience: or authorized_parties is required: .*other services/)
})

test('the issuer is kept byte for byte, and is an https address', () => {
  for (const issuer of [
    'https://tenant.eu.auth0.com/',
    'https://ID.example.com',
    'https://x.example/a/v2.0',
  ]) {
    const config = load(withSecurity({ enabled: true, issuers: [{ ...ISSUER, issuer }] }))
    assert.equal(config.clients.app?.row_level_security.issuers[0]?.issuer, issuer)
  }
  for (const issuer of [
    'id.example.com',
    'https://u:p@x.example',
    'https://x.example?a=b',
    'https://x.example#',
  ])
    assert.match(
      problems([{ ...ISSUER, issuer }])[0] ?? '',
      /^issuers\[0\]\.issuer: must be the https address/,
    )
  assert.match(problems([{ audience: ['x'] }])[0] ?? '', /^issuers\[0\]\.issuer: is required/)
})

test('plain http needs outbound.allow_http', () => {
  const plain = [{ ...ISSUER, issuer: 'http://id.example.com', jwks_url: 'http://id.example.com/keys' }]
  assert.deepEqual(problems(plain), [
    'issuers[0].issuer: needs https, or outbound.allow_http: true',
    'issuers[0].jwks_url: needs https, or outbound.allow_http: true',
  ])
  assert.deepEqual(problems(plain, { outbound: { allow_http: true } }), [])
})

test('no HMAC and no unsigned tokens can be allowed', () => {
  for (const algorithm of ['HS256', 'none', 'rs256', 'RSA1_5', 'dir'])
    assert.match(
      problems([{ ...ISSUER, algorithms: [algorithm] }])[0] ?? '',
      /^issuers\[0\]\.algorithms\[0\]: must be one of RS256, /,
    )
  assert.match(problems([{ ...ISSUER, algorithms: [] }])[0] ?? '', /needs at least one algorithm/)
})

test('claims that the service decides cannot be mapped', () => {
  for (const claim of ['role', 'session_id', 'two_factor', 'impersonated_by', 'sub', 'A', 'a b'])
    assert.match(
      problems([{ ...ISSUER, claims_map: { [claim]: 'x' } }])[0] ?? '',
      /a claim of request\.claims must be/,
    )
  assert.deepEqual(problems([{ ...ISSUER, claims_map: { user_id: 'oid', team: '/app/team' } }]), [])
})

test('two issuers each need a prefix, of which none begins with another one', () => {
  const two = (...prefixes: readonly (string | undefined)[]) =>
    problems(
      prefixes.map((subject_prefix, i) => ({
        ...ISSUER,
        issuer: `https://${i}.example.com`,
        ...(subject_prefix !== undefined && { subject_prefix }),
      })),
    ).map((line) => line.replace(/: is required beside another issuer, .*/, ''))
  assert.deepEqual(two('a:', 'b:'), [])
  assert.deepEqual(two(undefined, 'b:'), ['issuers[0].subject_prefix'])
  assert.deepEqual(two('a', 'ab'), ['issuers[0].subject_prefix'])
  assert.deepEqual(two('a:', 'a:'), ['issuers[0].subject_prefix', 'issuers[1].subject_prefix'])
  assert.deepEqual(two('a:', 'b:', undefined), ['issuers[2].subject_prefix'])
})

test('two issuers of organizations each need a prefix for them', () => {
  const issuer = (name: string, more: Settings) => ({
    ...ISSUER,
    issuer: `https://${name}.example.com`,
    subject_prefix: `${name}:`,
    ...more,
  })
  const claims_map = { organization_id: 'org_id' }
  assert.deepEqual(problems([issuer('a', { claims_map }), issuer('b', {})]), [])
  assert.match(
    problems([issuer('a', { claims_map }), issuer('b', { claims_map, organization_prefix: 'b/' })])[0] ?? '',
    /^issuers\[0\]\.organization_prefix: is required beside another issuer of organizations/,
  )
})

test('an issuer is given once, is not this service, and needs row-level security', () => {
  const other = { ...ISSUER, subject_prefix: 'b:' }
  assert.deepEqual(problems([{ ...ISSUER, subject_prefix: 'a:' }, other]), [
    'issuers[1].issuer: is given twice for this client',
  ])
  const [own] = problems([ISSUER], { server: { public_url: 'https://id.example.com' } })
  assert.match(own ?? '', /^issuers\[0\]\.issuer: is this service itself/)
  assert.deepEqual(complaints(withSecurity({ issuers: [ISSUER] })), [
    'gatehouse.yaml:5 clients.app.row_level_security.issuers: needs clients.app.row_level_security.enabled: true',
  ])
})

test('a problem is reported at its line, and a misspelt setting with the one that was meant', () => {
  const yaml = `clients:
  app:
    url: postgres://app:p@db/x
    row_level_security:
      enabled: true
      issuers:
        - issuer: https://id.example.com
          audience: [api]
          subject_prefx: a
          max_lifetime: 1y
        - text
`
  const aboutValues = complaints({ yaml }).filter((line) => !/is required|invalid/.test(line))
  assert.deepEqual(aboutValues, [
    'gatehouse.yaml:9 clients.app.row_level_security.issuers[0].subject_prefx: unknown setting; did you mean clients.app.row_level_security.issuers[0].subject_prefix?',
    'gatehouse.yaml:10 clients.app.row_level_security.issuers[0].max_lifetime: must be a duration like 500ms, 30s, 15m, 12h, 7d, from 1m to 30d; "1y" is not',
    'gatehouse.yaml:11 clients.app.row_level_security.issuers[1]: must be a section with issuer, jwks_url, audience, authorized_parties, typ, required_claims, algorithms, claims_map, role_claim, subject_prefix, organization_prefix, max_lifetime, two_factor',
  ])
  assert.match(problems({ issuer: 'x' })[0] ?? '', /^issuers: must be a list of sections/)
})

test('the environment sets the whole list as JSON, and the shown configuration can be loaded again', () => {
  const issuers = [
    { ...ISSUER, claims_map: { organization_id: '/o/Id' }, required_claims: { 'https://x/Y.z': 'A' } },
  ]
  const fromFile = load(withSecurity({ enabled: true, issuers }))
  const { yaml } = withSecurity({ enabled: true })
  const variable = 'SERVICE_CLIENTS__APP__ROW_LEVEL_SECURITY__ISSUERS'
  const fromVariable = load({ yaml, env: { [variable]: JSON.stringify(issuers) } })
  assert.deepEqual(withoutSources(fromVariable), withoutSources(fromFile))
  const shown = stringify(maskedConfig(fromFile)).replace('postgres://app:***@db/x', 'postgres://app:p@db/x')
  assert.deepEqual(withoutSources(load({ yaml: shown })), withoutSources(fromFile))
  const [issuer] = fromFile.clients.app?.row_level_security.issuers ?? []
  assert.deepEqual(issuer?.algorithms, ['RS256', 'ES256', 'EdDSA'])
  assert.equal(issuer?.max_lifetime, 86_400_000)
})
