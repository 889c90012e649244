import assert from 'node:assert/strict'
import { test } from 'node:test'
import { databaseArgument, libpqEnvironment } from './libpq-environment.ts'

const tls = (query: string, major = 18) => {
  const { PGSSLMODE, PGSSLROOTCERT } = libpqEnvironment(`postgres://u:p@db/x?${query}`, major)
  return [PGSSLMODE, PGSSLROOTCERT]
}

test('a certificate is verified wherever the service itself verifies it', () => {
  assert.deepEqual(tls(''), ['disable', undefined])
  assert.deepEqual(tls('sslmode=disable'), ['disable', undefined])
  for (const query of [
    'sslmode=require',
    'sslmode=prefer',
    'sslmode=verify-ca',
    'sslmode=verify-full',
    'ssl=true',
  ])
    assert.deepEqual(tls(query), ['verify-full', 'system'], query)
  assert.deepEqual(tls('sslmode=verify-full&sslrootcert=/ca.pem', 15), ['verify-full', '/ca.pem'])
  assert.deepEqual(tls('sslmode=no-verify'), ['require', undefined])
  assert.deepEqual(tls('sslmode=require&uselibpqcompat=true'), ['require', undefined])
})

test('names and passwords are decoded, and a database name is no keyword list', () => {
  const environment = libpqEnvironment(
    'postgres://us%40er:p%2F%3Aw@[::1]:6543/da%20ta?options=-c%20x%3Dy',
    18,
  )
  const { PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE } = environment
  assert.deepEqual(
    [PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE],
    ['::1', '6543', 'us@er', 'p/:w', 'da ta'],
  )
  assert.equal(libpqEnvironment('postgres://u:p@%2Ftmp%2Fsocket/x', 18).PGHOST, '/tmp/socket')
  assert.equal(databaseArgument("a' host=evil \\"), "--dbname=dbname='a\\' host=evil \\\\'")
})
