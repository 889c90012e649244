import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { databaseIdentity } from '#kernel/db/database-identity.ts'
import { testDatabase, withClient } from '#test/database.ts'
import { testKernel } from '#test/harness.ts'
import { openClients } from './clients.ts'

test('while the logging client does not answer, other clients go on where its database is known, and fail closed elsewhere', async () => {
  const [log, other] = [await testDatabase(), await testDatabase()]
  const kernel = await testKernel({
    config: {
      clients: {
        logging: { url: 'postgres://nobody:nothing@127.0.0.1:9/absent' },
        twin: { url: log.url },
        other: { url: other.url },
      },
    },
  })
  const open = (loggingDatabase: string | undefined) => {
    const environment = () => undefined
    const clients = openClients(kernel, {
      builtIn: {},
      loggingReaderUrl: undefined,
      environment,
      loggingDatabase,
    })
    after(() => clients.close())
    return async (name: string) => {
      const client = await clients.find(name)
      assert.ok(client)
      return (await clients.locate(client)).isLogging
    }
  }
  const isLogging = open(await withClient(log.url, databaseIdentity))
  assert.deepEqual(
    [await isLogging('logging'), await isLogging('twin'), await isLogging('other')],
    [true, true, false],
  )
  await assert.rejects(open(undefined)('other'), { code: 'client_unavailable' })
})
