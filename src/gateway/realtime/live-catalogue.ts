import type { ChangeFeed } from '#databases/drivers/changes.ts'
import type { TableName } from '#databases/request/request.ts'
import type { LiveTables } from './live-table.ts'

/** Milliseconds. A process of another version of this service, beside this one, would make its own triggers again each time. */
const RENEWED = 60_000

type LiveCatalogue = LiveTables & {
  forget(): void
  /** Another number means that it was forgotten. */
  version(): number
  /** How often the database has answered. */
  answers(): number
}

/** The live tables of a client, and what their policies read: asked once, until the feed tells of another structure. */
export function createLiveCatalogue(feed: ChangeFeed): LiveCatalogue {
  let answers = 0
  const counted = async <T>(asked: Promise<T>): Promise<T> => {
    const answer = await asked
    answers++
    return answer
  }
  let tables: ReturnType<ChangeFeed['tables']> | undefined
  const policies = new Map<string, ReturnType<ChangeFeed['policies']>>()
  /** By table, when its triggers were last made again. */
  const renewals = new Map<string, number>()
  const keyIn = async (table: TableName) => {
    tables ??= counted(feed.tables())
    return (await tables).find((one) => tableKey(one.table) === tableKey(table))?.key
  }
  let version = 0
  const forget = (): void => {
    version++
    tables = undefined
    policies.clear()
  }
  async function renew(table: TableName): Promise<void> {
    const last = renewals.get(tableKey(table)) ?? Number.NEGATIVE_INFINITY
    if (performance.now() - last < RENEWED) return
    renewals.set(tableKey(table), performance.now())
    await feed.renew(table)
  }
  /** A failure is not remembered. */
  const attempted = async <T>(reading: Promise<T>): Promise<T> => {
    try {
      return await reading
    } catch (error) {
      tables = undefined
      policies.clear()
      throw error
    }
  }
  return {
    forget,
    version: () => version,
    answers: () => answers,
    async keyOf(table) {
      const known = await attempted(keyIn(table))
      if (known !== undefined) return known
      // It may have become live a moment ago, or have a key of other columns.
      await renew(table)
      tables = undefined
      return attempted(keyIn(table))
    },
    policies(table) {
      const reading = policies.get(tableKey(table)) ?? counted(feed.policies(table))
      policies.set(tableKey(table), reading)
      return attempted(reading)
    },
  }
}

/** A text for each table. */
export const tableKey = ({ schema, table }: TableName): string => JSON.stringify([schema, table])
