import { CONNECTIONS } from '../loads.ts'
import type { Scenario } from '../scenario.ts'
import { pgbenchSide } from '../sides.ts'
import { liveSettings, makeLive, operatorKey } from '../streams.ts'
import { addRoles } from './row-by-session.ts'

const LIVE = 'a live table'
const OTHER = 'the same, not live'
const COLUMNS = 'id bigint generated always as identity primary key, n int, text text'

/** What writers of a live table pay, in the database alone. */
const writers = (title: string, connections: number, script: (table: string) => string): Scenario => ({
  title: `live rows, ${title}`,
  unit: 'statements per second',
  settings: liveSettings,
  async open(bench) {
    const { service } = bench
    await addRoles(bench)
    const headers = await operatorKey(service)
    await makeLive(service, headers, 'written_live', COLUMNS)
    await service.sql(`create table written_other (${COLUMNS})`)
    const side = (name: string, table: string) =>
      pgbenchSide(bench, `${script(table)};\n`, { name, connections })
    return [await side(LIVE, 'written_live'), await side(OTHER, 'written_other')]
  },
})

export const liveRowsInsert = writers(
  'what an insert of a row costs',
  CONNECTIONS,
  (table) => `insert into ${table} (n, text) values (1, 'lorem ipsum dolor')`,
)

export const liveRowsBulk = writers(
  'what an insert of 10,000 rows costs',
  1,
  (table) => `insert into ${table} (n, text) select i, 'lorem ipsum dolor' from generate_series(1, 10000) i`,
)
