import { type ClientAddress, openAddress } from '#databases/clients/addresses.ts'
import { driverFor } from '#databases/clients/client.ts'
import type { Clients } from '#databases/clients/clients.ts'
import type { ClientRow } from '#databases/clients/store.ts'
import {
  clientUrlForms,
  type DriverName,
  driversTaking,
  isDriverName,
  takes,
} from '#kernel/config/addresses.ts'
import { CLIENT_LIMITS } from '#kernel/config/sections/database.ts'
import { Failure } from '#kernel/errors.ts'
import { edge } from '#kernel/http/failures.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'

/** The addresses of a client, as an operator gives them. Null takes the direct one away. */
export type AddressFacts = {
  readonly driver?: DriverName
  readonly url?: string
  readonly url_env_var?: string
  readonly direct_url?: string | null
  readonly direct_url_env_var?: string | null
}

type Address = ClientAddress & { readonly driver: DriverName }

export function newAddress(kernel: Kernel, id: string, given: AddressFacts): Address {
  const driver = given.driver ?? 'postgresql'
  const url = ownPart(kernel, id, given, driver)
  if (url === undefined) throw edge('validation_error', { message: 'url or url_env_var is required' })
  return complete({ id, driver, ...url, ...NO_DIRECT, ...directPart(kernel, id, given, driver) })
}

/** The new address, or undefined if neither driver nor a URL changes. What is not given must fit a new driver. */
export function changedAddress(kernel: Kernel, former: ClientRow, change: AddressFacts): Address | undefined {
  const driver = change.driver ?? former.driver
  if (!isDriverName(driver))
    throw fail('invalid_client_url', { hint: 'Use a driver that this version supports' })
  const { id, sealedUrl, urlEnvVar, sealedDirectUrl, directUrlEnvVar } = former
  const [url, direct] = [ownPart(kernel, id, change, driver), directPart(kernel, id, change, driver)]
  if (url === undefined && direct === undefined && driver === former.driver) return undefined
  return complete({ id, driver, sealedUrl, urlEnvVar, sealedDirectUrl, directUrlEnvVar, ...url, ...direct })
}

const NO_DIRECT = { sealedDirectUrl: null, directUrlEnvVar: null }

function complete(address: Address): Address {
  const { driver, sealedDirectUrl, directUrlEnvVar } = address
  if ((sealedDirectUrl ?? directUrlEnvVar) !== null && !takes(driver, 'direct_url'))
    throw edge('validation_error', {
      message: `direct_url is for clients of driver ${driversTaking('direct_url')}`,
      details: { field: 'direct_url', in: 'body' },
    })
  return address
}

function ownPart(
  { secrets }: Kernel,
  id: string,
  { url, url_env_var }: AddressFacts,
  driver: DriverName,
): Pick<Address, 'sealedUrl' | 'urlEnvVar'> | undefined {
  if (url !== undefined && url_env_var !== undefined) throw both('url', 'url_env_var')
  if (url_env_var !== undefined) return { sealedUrl: null, urlEnvVar: url_env_var }
  if (url === undefined) return undefined
  return { sealedUrl: secrets.seal('client-url', wellFormed(url, driver), id), urlEnvVar: null }
}

function directPart(
  { secrets }: Kernel,
  id: string,
  { direct_url: url, direct_url_env_var: variable }: AddressFacts,
  driver: DriverName,
): Pick<Address, 'sealedDirectUrl' | 'directUrlEnvVar'> | undefined {
  if (url != null && variable != null) throw both('direct_url', 'direct_url_env_var')
  if (variable != null) return { sealedDirectUrl: null, directUrlEnvVar: variable }
  if (url != null)
    return {
      sealedDirectUrl: secrets.seal('client-direct-url', wellFormed(url, driver), id),
      directUrlEnvVar: null,
    }
  return url === null || variable === null ? NO_DIRECT : undefined
}

const both = (one: string, other: string) =>
  edge('validation_error', { message: `${one} and ${other} cannot be combined` })

/** The message does not repeat the URL, which may contain a valid password. */
function wellFormed(url: string, driver: DriverName): string {
  const text = clientUrlForms[driver].parse(url)
  if (text === undefined) throw fail('invalid_client_url', { hint: clientUrlForms[driver].advice })
  return text
}

/**
 * Checks the role of the URL. A URL that the database rejects, or whose role could reach the control database, is not registered. An
 * unreachable database is registered: it may start later, and every new pool checks the role again. A direct URL is checked in the same way,
 * and has to lead to the same database.
 */
export async function inspect(
  kernel: Kernel,
  clients: Clients,
  name: string,
  address: Address,
): Promise<boolean> {
  const opened = openAddress(kernel, clients.environment, address)
  if (typeof opened === 'string') throw unreadable(address, opened)
  const driver = driverFor(kernel, { name, ...opened, readOnly: true, ...CLIENT_LIMITS })
  try {
    await driver.probe()
    if (opened.direct_url !== undefined) await driver.requireSession?.()
    return true
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const { message, hint, details, code } = error
    const facts = { ...(hint !== undefined && { hint }), ...(details !== undefined && { details }) }
    if (code === 'unsafe_client') throw fail('unsafe_new_client', facts)
    if (code === 'direct_url_unusable') throw fail('invalid_client_url', { message, ...facts })
    if (code === 'client_refused')
      throw fail('refused_client', { hint: 'Check role, password, database and TLS' })
    return false
  } finally {
    await driver.close()
  }
}

/** A URL that was given is well-formed, so it is a former one, or that of a variable. */
function unreadable({ driver, urlEnvVar, directUrlEnvVar }: Address, which: 'url' | 'direct_url'): Failure {
  const variable = which === 'url' ? urlEnvVar : directUrlEnvVar
  const message =
    variable === null
      ? `The former ${which} of the client cannot be read, or is not one for the driver ${driver}: set it again`
      : `The environment variable ${variable} does not contain a valid database URL`
  return fail('invalid_client_url', { message, hint: clientUrlForms[driver].advice })
}
