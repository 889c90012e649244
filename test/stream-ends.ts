import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestService } from './harness.ts'
import { type PacedReader, readPaced } from './paced-reader.ts'

/** A stream ends as well when it cannot be found out about its caller within five seconds. */
class TooBusy extends Error {}

/** A test that runs again when the machine was too busy to find out about a caller. The test timeout ends it. */
export const patientTest = (name: string, work: () => Promise<void>) =>
  test(name, async () => {
    for (;;) {
      try {
        return await work()
      } catch (error) {
        if (!(error instanceof TooBusy)) throw error
      }
    }
  })

/** Why the service has ended the stream, by its log; undefined while it has not. */
export function reasonIn({ log }: TestService, { requestId }: PacedReader): string | undefined {
  const ends = log
    .map((line) => JSON.parse(line))
    .filter(({ event, request_id }) => event === 'stream_ended' && request_id === requestId)
  assert.ok(ends.length < 2, 'it is logged once')
  const reason: string | undefined = ends[0]?.reason
  if (reason === 'unknown_caller') throw new TooBusy()
  return reason
}

/** Reads an answer slowly, once the service has a connection: a busy machine may need longer than five seconds for one. */
export async function readOnceConnected(...asked: Parameters<typeof readPaced>): Promise<PacedReader> {
  for (;;) {
    try {
      return await readPaced(...asked)
    } catch (error) {
      if (!/"code":"client_unavailable"/.test(String(error))) throw error
    }
  }
}
