/** A process that does not renew its lease for this long is dead, milliseconds. */
export const LEASE = 30_000

export const leaseFrom = (now: Date) => ({ now, leaseUntil: new Date(now.getTime() + LEASE) })

export type Progress = { readonly progressPct: number; readonly progressStage: string }

/** How a running job is ended, and reports its progress. */
export type Running = {
  /** Aborts when the job is cancelled, when this process stops, or when another process has ended the job. */
  readonly signal: AbortSignal
  report(stage: string, fraction?: number): void
}
