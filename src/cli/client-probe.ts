import type { ConfiguredClient } from '#databases/clients/configured.ts'
import { errorNaming, UnusableDatabase } from '#kernel/db/unusable-database.ts'
import { Failure } from '#kernel/errors.ts'
import { sentenceOf } from './terminal.ts'

type ClientAddresses = {
  /** As messages spell it: `clients.shop`. */
  readonly setting: string
  readonly url: string | undefined
  readonly direct_url: string | undefined
}

/** Version of the client's server. Throws address, cause and what to do if it does not answer, or the direct URL is wrong. */
export async function probeClient(
  driver: ConfiguredClient['driver'],
  { setting, url, direct_url }: ClientAddresses,
): Promise<string> {
  const told = (name: string, address: string | undefined) => (error: unknown) => {
    throw new Error(unreached(`${setting}.${name}`, address, error), { cause: error })
  }
  const version = `${driver.name} ${await driver.probe().catch(told('url', url))}`
  try {
    await driver.requireSession?.()
    return version
  } catch (error) {
    // A pooler alone is enough for data.
    if (error instanceof Failure && error.code === 'direct_url_missing')
      return `${version}, without backups: ${error.message}`
    return told('direct_url', direct_url)(error)
  }
}

/** Callers are not told what a failure contains for the operator: its cause, and the address. */
function unreached(setting: string, url: string | undefined, error: unknown): string {
  const cause = innermost(error)
  if (url === undefined || cause === error) return sentenceOf(error)
  const reason = errorNaming(setting, url, cause)
  return reason instanceof UnusableDatabase
    ? reason.message
    : `${setting}: ${new URL(url).host} cannot be used: ${sentenceOf(cause)}`
}

const innermost = (error: unknown): unknown =>
  error instanceof Error && error.cause !== undefined ? innermost(error.cause) : error
