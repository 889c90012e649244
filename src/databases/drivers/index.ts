import type { DriverName } from '#kernel/config/addresses.ts'
import type { MakeDriver } from './driver.ts'
import { openPostgres } from './postgres/settings.ts'
import { openScylla } from './scylla/settings.ts'
import { openSupabase } from './supabase/settings.ts'

type Entry = {
  readonly make: MakeDriver
  /** The names that requests may give it. */
  readonly words: readonly string[]
}

/** Factories of drivers by name. `clientUrlForms` of the configuration has the form of their URLs. */
export const DRIVERS: Readonly<Record<DriverName, Entry>> = {
  postgresql: { make: openPostgres, words: ['postgresql', 'postgres'] },
  supabase: { make: openSupabase, words: ['supabase'] },
  scylladb: { make: openScylla, words: ['scylla', 'scylladb'] },
}
