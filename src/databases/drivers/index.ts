import type { DriverName } from '#kernel/config/addresses.ts'
import type { MakeDriver } from './driver.ts'
import { openPostgres } from './postgres/open.ts'
import { openScylla } from './scylla/open.ts'
import { openSupabase } from './supabase/open.ts'

type DriverEntry = {
  readonly make: MakeDriver
  /** Other names by which requests may call the driver (`driver` of POST /query/sql). */
  readonly aliases: readonly string[]
}

/** Factories of drivers by name. `clientUrlForms` of the configuration has the form of their URLs. */
export const DRIVERS: Readonly<Record<DriverName, DriverEntry>> = {
  postgresql: { make: openPostgres, aliases: ['postgres'] },
  supabase: { make: openSupabase, aliases: [] },
  scylladb: { make: openScylla, aliases: ['scylla'] },
}
