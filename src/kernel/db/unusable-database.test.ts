import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { testDatabase } from '#test/database.ts'
import { errorNaming, namedBy, UnusableDatabase } from './unusable-database.ts'

const SETTING = 'database.url'

/** The message for a login at that address. */
async function refusal(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  try {
    await namedBy(SETTING, url, () => client.connect())
  } catch (error) {
    assert.ok(error instanceof UnusableDatabase, String(error))
    return error.message
  } finally {
    await client.end()
  }
  return 'nothing'
}

test('errors of the server name the setting and give advice, and never contain the password', async () => {
  const { url, name } = await testDatabase()
  const changed = (change: (url: URL) => void): string => {
    const other = new URL(url)
    change(other)
    return other.href
  }
  const closed = 'postgres://ada:hidden@localhost:1/shop'
  assert.equal(
    await refusal(closed),
    'database.url: nothing listens at localhost:1: start the server, or check host and port',
  )
  const absent = await refusal(changed((url) => (url.pathname = `/${name}_absent`)))
  assert.match(absent, new RegExp(`^database.url: there is no database ${name}_absent: make it with "create`))
  const wrong = await refusal(changed((url) => (url.password = 'hidden')))
  assert.match(wrong, /^database.url: the server refuses the password of role \w+: check it/)
  const without = await refusal(changed((url) => (url.password = '')))
  assert.match(without, /^database.url: the server requires a password for role \w+, and the URL has none$/)
})

test('a pooler is told with the setting that needs the address of the server', () => {
  const url = 'postgres://ada:hidden@pgbouncer:6432/shop'
  const error = new Error('unsupported startup parameter: options')
  for (const [setting, direct] of [
    ['database.url (DATABASE_URL)', 'database.direct_url'],
    ['database.direct_url', 'database.direct_url'],
    ['clients.logging.url', 'clients.logging.direct_url'],
    ['clients.logging.direct_url', 'clients.logging.direct_url'],
  ]) {
    const told = errorNaming(setting ?? '', url, error)
    assert.match(told instanceof Error ? told.message : '', new RegExp(`own address in ${direct}$`))
  }
})

test('errors of the network are explained too, and unknown errors are not changed', () => {
  const url = 'postgres://ada:hidden@db.example.com:6000/shop'
  const says = (code: string, message: string) => {
    const error = errorNaming(SETTING, url, Object.assign(new Error(message), { code }))
    return error instanceof Error ? error.message : ''
  }
  for (const [code, message, expected] of [
    ['ENOTFOUND', 'getaddrinfo ENOTFOUND', /: the host db.example.com is not found/],
    ['ETIMEDOUT', 'connect ETIMEDOUT', /: db.example.com:6000 does not answer as PostgreSQL does/],
    ['', 'timeout expired', /: db.example.com:6000 does not answer/],
    ['ECONNRESET', 'read ECONNRESET', /closes the connection: is it a PostgreSQL server/],
    ['28000', 'no pg_hba.conf entry for host', /: the server refuses role ada: no pg_hba.conf entry/],
    ['53300', 'too many clients already', /database.max_connections/],
    ['25006', 'cannot execute', /takes no writes of role ada: name the primary server if it is a standby/],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'self-signed certificate', /NODE_EXTRA_CA_CERTS/],
    ['', 'The server does not support SSL connections', /sslmode/],
  ] as const) {
    assert.match(says(code, message), expected)
    assert.doesNotMatch(says(code, message), /hidden/)
  }
  const bug = new TypeError('not a function')
  assert.equal(errorNaming(SETTING, url, bug), bug)
})
