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

test('a direct URL of a client is one of PostgreSQL, beside the URL of the pooler', () => {
  const withDirect = (name: string, client: string) =>
    complaints({ yaml: `clients: { ${name}: { ${client} } }` })
  const direct = 'direct_url: "postgres://app:p@db/x"'
  assert.deepEqual(withDirect('a', `url: "postgres://app:p@pgbouncer/x", ${direct}`), [])
  assert.deepEqual(withDirect('a', `driver: supabase, url: "https://:k@x.example", ${direct}`), [
    'gatehouse.yaml:1 clients.a.direct_url: needs a client of driver postgresql (clients.a.driver is supabase)',
  ])
  assert.deepEqual(withDirect('default', direct), [
    'gatehouse.yaml:1 clients.default.direct_url: needs clients.default.url: the address of the pooler',
  ])
  const [unsafe = ''] = withDirect(
    'a',
    'url: "postgres://app:p@pgbouncer/x", direct_url: "postgres://db/x?options=y"',
  )
  assert.match(
    unsafe,
    /clients\.a\.direct_url: must be a URL like postgres:.*, without options, socket or file parameters/,
  )
})
