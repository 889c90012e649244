import type { FastifyReply, FastifyRequest } from 'fastify'
import { deleteTrustedDevice } from '#identity/trusted-devices.ts'
import { Failure } from '#kernel/errors.ts'
import { asksToOperate } from '#kernel/http/session-cookie.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { TRUSTED_DEVICE_COOKIE } from './cookies.ts'

/**
 * An `onError` hook: when a demand is not met, this browser's trusted device ends (auth.md 2). Clients that know nothing of demands sign in
 * again, and that sign-in then asks for the code which the demand is about. A console shows the proof (/reauthenticate), and the device is
 * trusted for the application too, maybe for another user of it.
 */
export async function endTrust(
  { db, config }: Kernel,
  request: FastifyRequest,
  reply: FastifyReply,
  error: Error,
): Promise<void> {
  const [caller, device] = [request.knownCaller, TRUSTED_DEVICE_COOKIE.of(request)]
  if (caller === undefined || device === undefined) return
  if (!(error instanceof Failure) || error.code !== 'SESSION_NOT_FRESH' || asksToOperate(request)) return
  const isOfCaller = await deleteTrustedDevice(db, caller.user.id, device)
  if (isOfCaller) TRUSTED_DEVICE_COOKIE.clear(config, reply)
}
