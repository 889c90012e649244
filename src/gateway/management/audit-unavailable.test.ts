import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { testServerUrl, withClient } from '#test/database.ts'
import { catalogueDigest } from '#test/management/catalogue-digest.ts'
import { objectsFor, REQUESTS } from '#test/management/requests.ts'
import { createSecuredTables } from '#test/secured-tables.ts'
import { OPERATIONS, type Operation } from './operations.ts'

const { t, database, admin } = await createSecuredTables()
const emitted: string[] = []
t.service.kernel.events.subscribe((name) => void emitted.push(name))

const onLog = (text: string) => withClient(t.loggingUrl, (client) => client.query(text))
const logName = new URL(t.loggingUrl).pathname.slice(1)
const onServer = (text: string) => withClient(testServerUrl(), (client) => client.query(text))

/** Ways in which the audit log cannot be written, with the way back. */
const OUTAGES: Readonly<
  Record<string, readonly [begin: () => Promise<unknown>, end: () => Promise<unknown>]>
> = {
  'the table has another name': [
    () => onLog('alter table database_audit_log rename to elsewhere'),
    () => onLog('alter table elsewhere rename to database_audit_log'),
  ],
  'the table for functions has another name': [
    () => onLog('alter table function_ddl_audit_log rename to elsewhere'),
    () => onLog('alter table elsewhere rename to function_ddl_audit_log'),
  ],
  'the right to write was revoked': [
    () => onLog('revoke insert on database_audit_log from current_user'),
    () => onLog('grant insert on database_audit_log to current_user'),
  ],
  'the database is down': [
    async () => {
      await onServer(`alter database ${logName} allow_connections false`)
      await onServer(
        `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '${logName}'`,
      )
    },
    () => onServer(`alter database ${logName} allow_connections true`),
  ],
}

const changing = (Object.keys(OPERATIONS) as Operation[]).filter(
  (operation) => OPERATIONS[operation].method !== 'GET',
) // the keys of OPERATIONS

const send = (operation: Operation, name: string) => {
  const { path, body } = REQUESTS[operation](name)
  return admin.send(OPERATIONS[operation].method, path, { body })
}

const nameOf = (outage: string) => `kept_${outage.replaceAll(' ', '_')}`

/** Before the service reads the catalogue for the first time. */
before(() => {
  const names = [...changing.map((operation) => `fine_${operation}`), ...Object.keys(OUTAGES).map(nameOf)]
  return withClient(database.url, (client) => client.query(names.map(objectsFor).join('')))
})

test('every operation has a request, which succeeds while the log can be written', async () => {
  assert.deepEqual(Object.keys(REQUESTS).toSorted(), Object.keys(OPERATIONS).toSorted())
  await withClient(database.url, async (client) => {
    for (const operation of changing) {
      const answer = await send(operation, `fine_${operation}`)
      assert.equal(answer.status, 200, `${operation}: ${answer.text}`)
    }
    await client.query('drop extension citext')
  })
})

/** Only changes of functions have a row in the table for functions. */
const isAffected = (outage: string, operation: Operation) =>
  !outage.includes('functions') || operation.includes('function')

for (const [outage, [begin, end]] of Object.entries(OUTAGES))
  test(`no operation changes anything when ${outage}`, async () => {
    await withClient(database.url, async (client) => {
      const name = nameOf(outage)
      const before = await catalogueDigest(client)
      emitted.length = 0
      await begin()
      try {
        for (const operation of changing.filter((one) => isAffected(outage, one))) {
          const { status, body, text } = await send(operation, name)
          assert.deepEqual([status, body.code], [503, 'audit_unavailable'], `${operation}: ${text}`)
        }
      } finally {
        await end()
      }
      assert.equal(await catalogueDigest(client), before)
      assert.deepEqual(emitted, [])
    })
  })
