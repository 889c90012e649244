import type { FastifyReply } from 'fastify'
import type { Presence } from '#databases/drivers/driver.ts'

/** Whether the caller still waits for this answer. Also over once the answer has been sent: nothing may run for it then. */
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
