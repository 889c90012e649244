import { type RawBuilder, sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { CustomFields } from './custom-fields.ts'
import { isAdmin } from './permissions.ts'
import { lockAdmins } from './roles.ts'

/** A user from an import or from the operator, whose word proves the address, with the hash of a password if there is one. */
export type UserToAdd = {
  readonly id: string
  readonly name: string
  readonly email: string
  readonly emailVerified: boolean
  readonly image: string | null
  readonly username: string | null
  readonly displayUsername: string | null
  readonly role: string
  readonly banned: boolean
  readonly banReason: string | null
  readonly banExpires: Date | null
  readonly createdAt: Date
  readonly accountId: string
  readonly passwordHash: string | null
  /** Default: none. */
  readonly fields?: CustomFields | null
}

/** The outcome for one user: added, or the value that another user has. */
export type Added = 'added' | 'email_taken' | 'username_taken' | 'field_taken' | 'id_taken'

/**
 * Adds the users that do not exist, each with its password or not at all, in one statement. Returns the outcomes in the order of
 * the users. Their ids, emails, usernames and values of unique fields must differ. Throws for such a value that a concurrent statement
 * adds (`takenField`). To be called in a transaction.
 */
export async function addUsers(
  kernel: Pick<Kernel, 'db' | 'config'>,
  users: readonly UserToAdd[],
): Promise<readonly Added[]> {
  const { db } = kernel
  if (users.some((user) => isAdmin(kernel, user))) await lockAdmins(db)
  const added = await insertUsers(db, users.toSorted(byEmail))
  const left = users.filter(({ id }) => !added.has(id))
  const taken = left.length === 0 ? new Map<string, Added>() : await findTaken(db, left)
  return users.map(({ id }) => (added.has(id) ? 'added' : (taken.get(id) ?? 'email_taken')))
}

/** One order for all statements, so that two at once cannot deadlock. */
const byEmail = (one: UserToAdd, other: UserToAdd): number => (one.email < other.email ? -1 : 1)

/** The outcomes that `addUsers` would have. Conflicts between users of the list are not seen. */
export async function lookUpUsers(db: Db, users: readonly UserToAdd[]): Promise<readonly Added[]> {
  const taken = await findTaken(db, users)
  return users.map(({ id }) => taken.get(id) ?? 'added')
}

/** One JSON parameter is faster than a parameter for each value, and the statement stays the same. */
async function insertUsers(db: Db, users: readonly UserToAdd[]): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ id: string }>`
    with line as (
      select * from json_to_recordset(${JSON.stringify(users)}::json) as line (
        "id" uuid, "name" text, "email" text, "emailVerified" boolean, "image" text, "username" text,
        "displayUsername" text, "role" text, "banned" boolean, "banReason" text, "banExpires" timestamptz,
        "createdAt" timestamptz, "accountId" uuid, "passwordHash" text, "fields" jsonb
      )
    ), added as (
      insert into service."user" (
        id, name, email, email_verified, email_proven_at, image, username, display_username, role, banned, ban_reason, ban_expires,
        created_at, updated_at, fields
      )
      select "id", "name", "email", "emailVerified", case when "emailVerified" then now() end, "image", "username", "displayUsername", "role", "banned",
        "banReason", "banExpires", "createdAt", "createdAt", nullif("fields", 'null')
      from line
      -- A join would change the order, and the first of two lines with one username has to get it.
      where (select true from service.hidden_sign_up h where h.username = line."username") is null
        and not ${isFieldTaken(sql`line."fields"`)}
      on conflict do nothing
      returning id
    ), credential as (
      insert into service.account (id, user_id, provider_id, account_id, password, created_at, updated_at)
      select "accountId", "id", 'credential', "id"::text, "passwordHash", "createdAt", "createdAt"
      from line join added using (id) where "passwordHash" is not null
    )
    select id from added`.execute(db)
  return new Set(rows.map(({ id }) => id))
}

async function findTaken(db: Db, users: readonly UserToAdd[]): Promise<Map<string, Added>> {
  const keys = users.map(({ id, email, username, fields }) => ({ id, email, username, fields }))
  const { rows } = await sql<{ id: string; taken: Added | null }>`
    select line.id, case
      when exists (select from service."user" u where u.email = line.email) then 'email_taken'
      when exists (select from service."user" u where u.username = line.username) then 'username_taken'
      when exists (select from service.hidden_sign_up h where h.username = line.username) then 'username_taken'
      when ${isFieldTaken(sql`line.fields`)} then 'field_taken'
      when exists (select from service."user" u where u.id = line.id) then 'id_taken'
    end as taken
    from json_to_recordset(${JSON.stringify(keys)}::json) as line (id uuid, email text, username text, fields jsonb)`.execute(
    db,
  )
  return new Map(rows.flatMap(({ id, taken }) => (taken === null ? [] : [[id, taken]])))
}

/** Whether somebody has the value of a unique field. */
const isFieldTaken = (fields: RawBuilder<unknown>) => sql`exists (
  select from service.unique_field f join service.unique_field_value v on v.name = f.name and v.value = ${fields} -> f.name
)`
