import assert from 'node:assert/strict'
import { test } from 'node:test'
import { complaints } from '#test/configuration.ts'

const withRole = (client: string, role: string) =>
  complaints({ yaml: `clients: { a: { ${client}, sql_role: { ${role} } } }` })

test('the SQL role has a name and a password, and is not the role of the client’s URL', () => {
  const client = 'url: "postgres://app:p@db/x"'
  assert.deepEqual(withRole(client, 'name: app_sql, password: p'), [])
  for (const half of ['name: app_sql', 'password: p'])
    assert.deepEqual(withRole(client, half), [
      'gatehouse.yaml:1 clients.a.sql_role: needs both name and password',
    ])
  assert.deepEqual(withRole(client, 'name: app, password: p'), [
    'gatehouse.yaml:1 clients.a.sql_role.name: is the role of clients.a.url; name another one that is no member of it',
  ])
  assert.deepEqual(withRole('driver: supabase, url: "https://:k@x.example"', 'name: app_sql, password: p'), [
    'gatehouse.yaml:1 clients.a.sql_role.name: needs a client of driver postgresql (clients.a.driver is supabase)',
  ])
})

test('the drain is at most half of the time of a stop', () => {
  const stop = (drain: string, shutdown: string) =>
    complaints({ yaml: `server: { drain: ${drain} }\nlimits: { shutdown: ${shutdown} }` })
  assert.deepEqual(stop('5s', '10s'), [])
  assert.deepEqual(stop('6s', '10s'), [
    'gatehouse.yaml:1 server.drain: must be at most half of limits.shutdown, since requests and jobs finish after it',
  ])
})
