import type { Presence } from '#databases/drivers/driver.ts'
import type { GatewayCaller } from '#gateway/caller/caller.ts'
import {
  requireNeeded,
  requireNotFrozenSince,
  requireSameDatabase,
  requireSamePersona,
} from '#gateway/caller/caller-rights.ts'
import { Failure, withDetails } from '#kernel/errors.ts'
import type { MergedPipeline } from '../merge.ts'

/** A run, as a request or a command asks for it. */
export type RunRequest = {
  readonly requestId: string
  /** The name of the pipeline of the file, if any, and its parts merged with those of the request. */
  readonly pipeline: string | undefined
  readonly parts: MergedPipeline
  readonly dryRun: boolean
  /** A simulation may lack the sink. */
  readonly needsSink: boolean
  readonly source: RunEnd
  readonly sink: RunEnd
  /** Whether the caller still waits for the result. */
  readonly presence: Presence
  /** Aborted when the service stops. */
  readonly stopping?: AbortSignal
  /** Called after each batch. */
  readonly onProgress?: (progress: RunProgress) => void
}

/** One end of a run. */
export type RunEnd = {
  /** The name of its client. */
  readonly client: string
  /** The caller on that client. Called again before every batch; it throws when the caller may not continue. */
  caller(): Promise<GatewayCaller>
}

export type RunProgress = {
  readonly rowsFetched: number
  readonly rowsInserted: number
  readonly errors: number
}

/** A failure of the work says at which end of the run it was. */
export async function atEnd<T>(
  request: RunRequest,
  step: 'source' | 'sink',
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const { client } = request[step]
    throw error instanceof Failure ? withDetails(error, { step, client }) : error
  }
}

/** All rows of a run are read and written for one caller, on the same databases. */
export async function requireSameCaller(before: GatewayCaller, now: GatewayCaller): Promise<void> {
  requireNotFrozenSince(before, now)
  requireSamePersona(before, now)
  await requireSameDatabase(before, now)
}

/** For the time between two batches. The caller keeps the rights that it has needed. */
export async function requireStillOn(before: GatewayCaller, end: RunEnd): Promise<void> {
  const now = await end.caller()
  await requireSameCaller(before, now)
  requireNeeded(before, now)
}
