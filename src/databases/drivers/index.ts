import type { DriverName } from '#kernel/config/addresses.ts'
import type { MakeDriver } from './driver.ts'
import { postgresFor } from './postgres/settings.ts'
import { scyllaFor } from './scylla/settings.ts'
import { supabaseFor } from './supabase/settings.ts'

/** How the driver of a client is made, by its name. What its URL must be: `clientUrlForms` of the configuration. */
export const drivers = {
  postgresql: postgresFor,
  supabase: supabaseFor,
  scylladb: scyllaFor,
} satisfies Record<DriverName, MakeDriver>
