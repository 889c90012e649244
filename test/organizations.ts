import { tokenHash } from '#identity/tokens.ts'
import { randomToken, uuidv7 } from '#kernel/random.ts'
import { type Actor, actor, type TestService } from './harness.ts'

/** A user with a session, without a password. */
export type Person = Actor & {
  readonly id: string
  readonly email: string
  readonly token: string
  readonly sessionId: string
}

const DAY = 86_400_000

/** Creates a user and a session with SQL. */
export async function createPerson(
  { url, service }: TestService,
  more: { readonly verified?: boolean; readonly role?: string } = {},
): Promise<Person> {
  const { verified = true, role = 'user' } = more
  const { db, now, random } = service.kernel
  const at = now()
  const times = { createdAt: at, updatedAt: at }
  const [id, sessionId, token] = [uuidv7(at, random), uuidv7(at, random), randomToken(random)]
  const email = `${id.slice(-12)}@example.com`
  await db
    .insertInto('user')
    .values({
      id,
      name: 'Ada',
      email,
      emailVerified: verified,
      emailProvenAt: verified ? at : null,
      role,
      ...times,
    })
    .execute()
  const session = { id: sessionId, userId: id, tokenHash: tokenHash(token), remembered: true, authTime: at }
  await db
    .insertInto('session')
    .values({ ...session, ...times, expiresAt: new Date(at.getTime() + DAY) })
    .execute()
  return { ...actor(url, { authorization: `Bearer ${token}` }), id, email, token, sessionId }
}

export type Organization = {
  readonly id: string
  readonly slug: string
  /** Ids of the members, by user. */
  readonly memberIds: ReadonlyMap<Person, string>
}

/** Creates an organization with SQL. It becomes active in the sessions of its members. */
export async function createOrganization(
  { service }: TestService,
  members: readonly (readonly [person: Person, role: string])[],
): Promise<Organization> {
  const { db, now, random, coherence } = service.kernel
  const at = now()
  const id = uuidv7(at, random)
  const slug = `o-${id.slice(-12)}`
  const memberIds = new Map(members.map(([person]) => [person, uuidv7(at, random)]))
  await db
    .insertInto('organization')
    .values({ id, name: 'Acme', slug, createdAt: at, updatedAt: at })
    .execute()
  await db
    .insertInto('member')
    .values(
      members.map(([person, role], index) => ({
        ...{ id: memberIds.get(person) ?? '', organizationId: id, userId: person.id, role },
        // They joined one after the other.
        createdAt: new Date(at.getTime() + index),
      })),
    )
    .execute()
  await db
    .updateTable('session')
    .set({ activeOrganizationId: id })
    .where(
      'id',
      'in',
      members.map(([{ sessionId }]) => sessionId),
    )
    .execute()
  await coherence.settle()
  return { id, slug, memberIds }
}

/** Creates a pending invitation with SQL; returns its id. */
export async function createInvitation(
  { service }: TestService,
  organization: Organization,
  invitation: { readonly from: Person; readonly to: string; readonly role?: string },
): Promise<string> {
  const { db, now, random } = service.kernel
  const at = now()
  const id = uuidv7(at, random)
  const { from, to: email, role = 'member' } = invitation
  await db
    .insertInto('invitation')
    .values({
      ...{ id, organizationId: organization.id, inviterId: from.id, email, role },
      ...{ createdAt: at, expiresAt: new Date(at.getTime() + 2 * DAY) },
    })
    .execute()
  return id
}
