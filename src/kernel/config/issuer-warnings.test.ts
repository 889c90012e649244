import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultConfig } from './config.ts'
import { warningsOf } from './warnings.ts'

const issuer = (name: string, more: object = {}) => ({
  issuer: `https://${name}.example.com`,
  audience: ['x'],
  ...more,
})
const client = (issuers: readonly object[], more: object = {}, url = 'postgres://app:p@db/rows') => ({
  url,
  row_level_security: { enabled: true, issuers, ...more },
})
const OTHERS = { own_sessions: false }
const warnings = (one: object, two: object) =>
  warningsOf(defaultConfig({ clients: { one, two } })).filter((line) => line.includes('issuers['))

test('an issuer that can name users or organizations of another client of its database is warned of', () => {
  const says = (name: string, of: string, other: string, prefix: string) =>
    `clients.${name}.row_level_security.issuers[0] can name ${of} of the client ${other}, which has the same database: set ${prefix}.`
  assert.deepEqual(warnings(client([]), client([issuer('a')], OTHERS, 'postgres://other:p@db/rows')), [
    says('two', 'users', 'one', 'subject_prefix'),
  ])
  const named = { subject_prefix: 'a:', claims_map: { organization_id: 'org' } }
  assert.deepEqual(warnings(client([]), client([issuer('a', named)], OTHERS)), [
    says('two', 'organizations', 'one', 'organization_prefix'),
  ])
  assert.deepEqual(warnings(client([issuer('a')], OTHERS), client([issuer('b')], OTHERS)), [
    says('one', 'users', 'two', 'subject_prefix'),
    says('two', 'users', 'one', 'subject_prefix'),
  ])
  assert.deepEqual(
    warnings(client([issuer('a', { subject_prefix: 'a' })]), client([issuer('b', { subject_prefix: 'ab' })])),
    [says('one', 'users', 'two', 'subject_prefix')],
  )
})

test('distinct prefixes, other databases, one issuer, and own sessions that refuse UUIDs need no warning', () => {
  const prefixed = (name: string) => issuer(name, { subject_prefix: `${name}:` })
  for (const [one, two] of [
    [client([prefixed('a')], OTHERS), client([prefixed('b')])],
    [client([]), client([issuer('a')])],
    [client([]), client([issuer('a')], OTHERS, 'postgres://app:p@db/others')],
    [client([issuer('a')], OTHERS), client([issuer('a')], OTHERS)],
    [client([], { enabled: false }), client([issuer('a')], OTHERS)],
  ] as const)
    assert.deepEqual(warnings(one, two), [])
})
