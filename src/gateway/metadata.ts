import { isUnstorableJson } from '#kernel/db/conflicts.ts'
import { edge } from '#kernel/http/failures.ts'

/** Runs the statements that store metadata, which is any JSON of the caller. */
export async function storingMetadata<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (!isUnstorableJson(cause)) throw cause
    throw edge('validation_error', {
      message: 'metadata has a number that is too large',
      details: { field: 'metadata', in: 'body' },
      cause,
    })
  }
}
