import type { CaseContext } from './service.ts'

export type CaseResult = { readonly name: string; readonly error?: string }

/** Runs the cases in a runtime. */
export type RunCases = (context: CaseContext) => Promise<readonly CaseResult[]>

/** Milliseconds for all cases in one runtime. */
export const PATIENCE = 120_000
