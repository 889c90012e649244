import assert from 'node:assert/strict'
import { actor, type TestService, type User } from '#test/harness.ts'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'

/** Causes a look at the rows of a user, at a service whose client has row-level security. */
export async function seeAs({ controlUrl }: TestService, { id }: User) {
  const { t, createTable } = await createSecuredTables({ controlUrl })
  await createTable('seen', [TEXT, USER])
  const operator = actor(t.url, { ...t.admin.headers, 'x-service-client': 'app' })
  const answer = await operator.post('/see-as', { table_name: 'seen', user_id: id })
  assert.equal(answer.status, 200, answer.text)
  return { actorId: 'admin-key', targetId: id, answer }
}
