export type Progress = { readonly progressPct: number; readonly progressStage: string }

/** What a running job needs from its surroundings. */
export type Running = {
  /** Aborts when the job is cancelled, when this process stops, or when the job has gone to nobody. */
  readonly signal: AbortSignal
  report(stage: string, fraction?: number): void
}
