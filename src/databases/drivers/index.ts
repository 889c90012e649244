import type { DriverName } from '#kernel/config/addresses.ts'
import type { MakeDriver } from './driver.ts'
import { openPostgres } from './postgres/settings.ts'
import { openScylla } from './scylla/settings.ts'
import { openSupabase } from './supabase/settings.ts'

/** How the driver of a client is made, by its name. What its URL must be: `clientUrlForms` of the configuration. */
export const DRIVERS = {
  postgresql: openPostgres,
  supabase: openSupabase,
  scylladb: openScylla,
} satisfies Record<DriverName, MakeDriver>
