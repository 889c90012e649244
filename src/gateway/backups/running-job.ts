/** A process that does not renew its lease for this long is dead, milliseconds. */
export const LEASE = 30_000

export const leaseFrom = (now: Date) => ({ now, leaseUntil: new Date(now.getTime() + LEASE) })

export type Progress = { readonly progressPct: number; readonly progressStage: string }

/** What a running job needs from its surroundings. */
export type Running = {
  /** Aborts when the job is cancelled, when this process stops, or when the job has gone to nobody. */
  readonly signal: AbortSignal
  report(stage: string, fraction?: number): void
}
