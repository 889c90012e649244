import type { DriverName } from '#kernel/config/addresses.ts'
import type { OpenDriver } from './driver.ts'
import { openPostgres } from './postgres/open.ts'
import { openScylla } from './scylla/open.ts'
import { openSupabase } from './supabase/open.ts'

type DriverEntry = {
  readonly open: OpenDriver
  /** Other names by which requests may call the driver (`driver` of POST /query/sql). */
  readonly aliases: readonly string[]
}

/** Factories of drivers by name. `clientUrlForms` of the configuration has the form of their URLs. */
export const DRIVERS: Readonly<Record<DriverName, DriverEntry>> = {
  postgresql: { open: openPostgres, aliases: ['postgres'] },
  supabase: { open: openSupabase, aliases: [] },
  scylladb: { open: openScylla, aliases: ['scylla'] },
}
