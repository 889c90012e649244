import type { TestService } from '#test/harness.ts'
import { createOrganization } from '#test/organizations.ts'

/**
 * Creates a user with a password, a proven address, every permission and an active organization, so that attacks with the session get past
 * the rights of its user. Returns the session's token.
 */
export async function createVictim(t: TestService): Promise<string> {
  const { db } = t.service.kernel
  const user = await t.signUp('Victim')
  await db
    .updateTable('user')
    .set({ role: 'admin', emailVerified: true, emailProvenAt: new Date() })
    .where('id', '=', user.id)
    .execute()
  const session = await db
    .selectFrom('session')
    .select('id')
    .where('userId', '=', user.id)
    .executeTakeFirstOrThrow()
  await createOrganization(t, [[{ ...user, sessionId: session.id }, 'owner']])
  return user.token
}
