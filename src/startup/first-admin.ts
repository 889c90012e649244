import { offerFirstAdmin } from '#identity/first-admin.ts'
import type { Config } from '#kernel/config/config.ts'
import { clockOf, connectOnce } from '#kernel/db/connect.ts'
import type { Random } from '#kernel/random.ts'

/** The token of a link for the first admin; undefined when there is one already. */
export async function offerFirstAdminAt(
  url: string,
  config: Config,
  random: Random,
): Promise<string | undefined> {
  const control = connectOnce(url)
  try {
    return await control.db
      .transaction()
      .execute(async (db) => offerFirstAdmin({ db, config, random, now: await clockOf(db) }))
  } finally {
    await control.close()
  }
}
