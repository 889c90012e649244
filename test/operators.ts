import { sessionCookieName } from '#kernel/http/session-cookie.ts'
import { type Actor, actor, type TestService } from './harness.ts'
import { createPerson, type Person } from './organizations.ts'

export const OPERATE = { 'x-service-session': '1' }

/** The actor with these headers besides, on every request. */
export const sending = (t: TestService, headers: Readonly<Record<string, string>>): Actor =>
  actor(t.url, { ...OPERATE, 'x-service-client': 'default', ...headers })

export const byBearer = (t: TestService, { token }: Pick<Person, 'token'>): Actor =>
  sending(t, { authorization: `Bearer ${token}` })

/** As a page of this origin. */
export const byCookie = (
  t: TestService,
  { token }: Pick<Person, 'token'>,
  headers: Readonly<Record<string, string>> = { origin: new URL(t.service.kernel.publicUrl()).origin },
): Actor =>
  sending(t, { cookie: `${sessionCookieName(t.config, { headers: OPERATE })}=${token}`, ...headers })

/** A user of this role, whose session has shown a proof so many minutes ago. */
export async function operatorOf(t: TestService, role: string, minutes = 0): Promise<Person> {
  const person = await createPerson(t, { role })
  if (minutes > 0) await ageProof(t, person, minutes)
  return person
}

export async function ageProof(
  { service }: TestService,
  { sessionId }: Pick<Person, 'sessionId'>,
  minutes: number,
): Promise<void> {
  const { db, now, coherence } = service.kernel
  const authTime = new Date(now().getTime() - minutes * 60_000)
  await db.updateTable('session').set({ authTime }).where('id', '=', sessionId).execute()
  await coherence.settle()
}
