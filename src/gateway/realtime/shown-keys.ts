import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import type { Cohort } from './cohort.ts'

/** The memory of this process for the keys that cohorts have shown. */
export type ShownKeys = {
  /** They count from now on. */
  count(cohort: Cohort): void
  discount(cohort: Cohort): void
}

export function createShownKeys({ config, log }: Pick<Kernel, 'config' | 'log'>): ShownKeys {
  const most = config.limits.stream_keys
  const cohorts = new Set<Cohort>()
  let bytes = 0

  function resize(by: number): void {
    // Not at once: the cohorts are being worked on.
    if (bytes <= most && bytes + by > most) queueMicrotask(makeRoom)
    bytes += by
  }

  function makeRoom(): void {
    while (bytes > most) {
      const largest = [...cohorts].reduce((one, other) => (share(other) > share(one) ? other : one))
      log.warn(
        { event: 'live_streams_ended', table: largest.live.name, streams: largest.members.size },
        'streams of live rows ended, since the keys of their rows take more memory than limits.stream_keys',
      )
      const full = fail('too_many_streams', { details: { setting: 'limits.stream_keys' } })
      for (const member of largest.members) member.dismiss(full)
      discount(largest)
    }
  }

  function discount(cohort: Cohort): void {
    if (!cohorts.delete(cohort)) return
    cohort.resized = () => {}
    resize(-cohort.shownBytes)
  }

  return {
    count(cohort) {
      cohorts.add(cohort)
      cohort.resized = resize
      resize(cohort.shownBytes)
    },
    discount,
  }
}

/** For each stream: those that end come back, and each has keys of its own then. */
const share = ({ shownBytes, members }: Cohort): number => shownBytes / members.size
