import { sql } from 'kysely'
import type { Config } from '#kernel/config/config.ts'
import type { Db } from '#kernel/db/connect.ts'
import { UNIQUE_TEXT_MAX } from '#kernel/field-values.ts'

/** A field cannot become unique: users have equal values, or longer ones than a unique field can have. */
export class UniqueFieldError extends Error {}

/**
 * Brings the unique fields of the database to those of the configuration. Nobody adds or changes a user meanwhile; without a change it
 * takes one short statement.
 */
export async function settleUniqueFields(db: Db, { auth }: Config): Promise<void> {
  const wanted = Object.entries(auth.user.fields).flatMap(([name, { unique }]) => (unique ? [name] : []))
  if (await isSettled(db, wanted)) return
  await db.transaction().execute(async (db) => {
    // The triggers of statements that have begun do not see the names that this transaction adds.
    await sql`lock table service."user", service.hidden_sign_up in share row exclusive mode`.execute(db)
    await sql`delete from service.unique_field where name <> all (${wanted}::text[])`.execute(db)
    for (const name of wanted) await makeUnique(db, name)
  })
}

async function isSettled(db: Db, wanted: readonly string[]): Promise<boolean> {
  const { rows } = await sql<{ name: string }>`select name from service.unique_field`.execute(db)
  return rows.length === wanted.length && rows.every(({ name }) => wanted.includes(name))
}

async function makeUnique(db: Db, name: string): Promise<void> {
  const { rows: long } = await sql<{ count: string }>`
    select count(*) from service."user" where char_length(fields ->> ${name}) > ${UNIQUE_TEXT_MAX}`.execute(
    db,
  )
  expectNone(name, long, `values are longer than the ${UNIQUE_TEXT_MAX} characters of a unique one`)
  const { rows: equal } = await sql<{ count: string }>`
    select count(*) from (
      select from service."user" where fields ? ${name} group by fields -> ${name} having count(*) > 1
    ) as equal`.execute(db)
  expectNone(name, equal, 'values belong to several users each')
  await sql`
    with added as (
      insert into service.unique_field (name) values (${name}) on conflict do nothing returning name
    )
    insert into service.unique_field_value (name, value, user_id)
      select added.name, u.fields -> added.name, u.id from added, service."user" u where u.fields ? added.name`.execute(
    db,
  )
}

function expectNone(name: string, [found]: readonly { readonly count: string }[], are: string): void {
  const count = Number(found?.count ?? 0)
  if (count === 0) return
  throw new UniqueFieldError(
    `auth.user.fields.${name}.unique: ${count} ${are}. Change those users, or remove the setting.`,
  )
}
