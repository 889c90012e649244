import { settleUniqueFields } from '#identity/unique-fields.ts'
import type { Config } from '#kernel/config/config.ts'
import { connectOnce } from '#kernel/db/connect.ts'

/** A field that becomes unique reads every user: milliseconds. */
const LONGEST = 600_000

/** Also without `database.migrate`: it changes rows only. */
export async function settleUniqueFieldsAt(url: string, config: Config): Promise<void> {
  const control = connectOnce(url, LONGEST)
  try {
    await settleUniqueFields(control.db, config)
  } finally {
    await control.close()
  }
}
