import { Failure, withDetails } from '#kernel/errors.ts'
import type { RunEnd } from './run-result.ts'

/** A failure of the work says at which end of the run it was. */
export async function atStep<T>(
  step: 'source' | 'sink',
  { client }: Pick<RunEnd, 'client'>,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof Failure ? withDetails(error, { step, client }) : error
  }
}
