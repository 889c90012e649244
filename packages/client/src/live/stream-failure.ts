import { failure, GatehouseError, refusal } from '../failure.ts'
import { type Numbers, parseJson } from '../json.ts'

/** The connection is lost. */
export const streamBroken = (cause?: unknown): GatehouseError =>
  failure({ code: 'network', message: 'The service cannot be reached, or the stream broke', cause })

/** The service has ended the stream, for a reason that it has told. */
export const streamEnded = (reason: string): GatehouseError =>
  failure({ code: 'stream_ended', message: `The stream has ended: ${reason}`, details: { reason } })

/** Reads an answer that is no stream. */
export async function refusedStream(response: Response, numbers: Numbers): Promise<GatehouseError> {
  const text = await response.text()
  try {
    return refusal(response, parseJson(text, numbers))
  } catch {
    return refusal(response, undefined)
  }
}

export const asFailure = (error: unknown): GatehouseError =>
  error instanceof GatehouseError ? (error as GatehouseError) : streamBroken(error)

/** States in which the same request may succeed later. */
const TRANSIENT = new Set([408, 425, 429])
/** Failures of the client that stay. */
const LASTING = new Set<string>(['stream_ended', 'inexact_key'])

/** Whether asking again would not help. Answers of proxies, which are none of the service, pass. */
export const isLasting = ({ code, status }: GatehouseError): boolean =>
  LASTING.has(code) || (code !== 'network' && status >= 400 && status < 500 && !TRANSIENT.has(status))
