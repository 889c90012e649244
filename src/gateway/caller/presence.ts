import type { FastifyReply } from 'fastify'
import type { Presence } from '#databases/drivers/driver.ts'

/** Whether the caller still waits for the response. It ends when the response has been sent as well: no statement may run for it then. */
export function presenceOf({ raw }: FastifyReply): Presence {
  let signal: AbortSignal | undefined
  return {
    hasLeft: () => raw.destroyed,
    signal() {
      signal ??= whenClosed(raw)
      return signal
    },
  }
}

function whenClosed(raw: FastifyReply['raw']): AbortSignal {
  const controller = new AbortController()
  if (raw.destroyed) controller.abort()
  raw.once('close', () => controller.abort())
  return controller.signal
}
