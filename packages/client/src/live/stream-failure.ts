import { broken, failure, GatehouseError } from '../failure.ts'

/** The service has ended the stream, for a reason that it has told. */
export const streamEnded = (reason: string): GatehouseError =>
  failure({ code: 'stream_ended', message: `The stream has ended: ${reason}`, details: { reason } })

export const asFailure = (error: unknown): GatehouseError =>
  error instanceof GatehouseError ? (error as GatehouseError) : broken(error)

/** States in which the same request may succeed later. */
const TRANSIENT: readonly number[] = [408, 429]
/** Failures of the client that stay. */
const LASTING: readonly string[] = ['stream_ended', 'inexact_key']

/** Whether asking again would not help. Answers of proxies, which are none of the service, pass. */
export const isLasting = ({ code, status }: GatehouseError): boolean =>
  LASTING.includes(code) ||
  (code !== 'network' && status >= 400 && status < 500 && !TRANSIENT.includes(status))
