import type { DriverName } from '#kernel/config/addresses.ts'
import type { MakeDriver } from './driver.ts'
import { openPostgres } from './postgres/settings.ts'
import { openScylla } from './scylla/settings.ts'
import { openSupabase } from './supabase/settings.ts'

/** Factories of drivers by name. `clientUrlForms` of the configuration has the form of their URLs. */
export const DRIVERS = {
  postgresql: openPostgres,
  supabase: openSupabase,
  scylladb: openScylla,
} satisfies Record<DriverName, MakeDriver>
