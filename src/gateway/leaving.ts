import type { FastifyReply } from 'fastify'

/** Aborts when the caller goes away before the answer; what runs for them can end then. */
export function leaving({ raw }: FastifyReply): AbortSignal {
  const controller = new AbortController()
  if (raw.destroyed) controller.abort()
  raw.once('close', () => controller.abort())
  return controller.signal
}
