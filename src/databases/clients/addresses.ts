import { clientUrlForms, type DriverName, isDriverName } from '#kernel/config/addresses.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Secrets } from '#kernel/secrets.ts'
import { type ClientRow, resealClient } from './store.ts'

/** Reads one variable of the environment in which the service was started. */
export type Environment = (name: string) => string | undefined

/** The addresses of a registered client: `url`, and `direct_url` where that is the address of a pooler. Each is sealed, or in a variable. */
export type ClientAddress = Pick<
  ClientRow,
  'id' | 'driver' | 'sealedUrl' | 'urlEnvVar' | 'sealedDirectUrl' | 'directUrlEnvVar'
>

type OpenedAddress = {
  readonly driver: DriverName
  readonly url: string
  readonly direct_url: string | undefined
}

/** Both URLs in clear; the name of the one that was sealed with a lost secret, or does not fit the driver. */
export function openAddress(
  { secrets }: Pick<Kernel, 'secrets'>,
  environment: Environment,
  address: ClientAddress,
): OpenedAddress | 'url' | 'direct_url' {
  const { driver, urlEnvVar, directUrlEnvVar } = address
  if (!isDriverName(driver)) return 'url'
  const form = clientUrlForms[driver]
  const opened = sealedUrls(secrets, address)
  const url = form.parse((urlEnvVar === null ? opened.url : environment(urlEnvVar)) ?? '')
  if (url === undefined) return 'url'
  if (address.sealedDirectUrl === null && directUrlEnvVar === null)
    return { driver, url, direct_url: undefined }
  const direct = form.parse(
    (directUrlEnvVar === null ? opened.direct_url : environment(directUrlEnvVar)) ?? '',
  )
  return direct === undefined ? 'direct_url' : { driver, url, direct_url: direct }
}

type SealedUrls = Pick<ClientRow, 'id' | 'sealedUrl' | 'sealedDirectUrl'>

/** Undefined for one that is not sealed or does not open. */
export function sealedUrls(secrets: Pick<Secrets, 'open'>, { id, sealedUrl, sealedDirectUrl }: SealedUrls) {
  return {
    url: sealedUrl === null ? undefined : secrets.open('client-url', sealedUrl, id),
    direct_url: sealedDirectUrl === null ? undefined : secrets.open('client-direct-url', sealedDirectUrl, id),
  }
}

/** After a rotation of the secret, seals the URLs with the new secret. If this fails, the next load tries again. */
export async function resealUrls(
  { db, secrets }: Pick<Kernel, 'db' | 'secrets'>,
  row: SealedUrls,
): Promise<void> {
  const { id, sealedUrl, sealedDirectUrl } = row
  const opened = sealedUrls(secrets, row)
  const isFormer = (sealed: string | null): sealed is string => sealed !== null && !secrets.isCurrent(sealed)
  if (isFormer(sealedUrl) && opened.url !== undefined)
    await resealClient(db, id, 'sealedUrl', {
      from: sealedUrl,
      to: secrets.seal('client-url', opened.url, id),
    })
  if (isFormer(sealedDirectUrl) && opened.direct_url !== undefined) {
    const to = secrets.seal('client-direct-url', opened.direct_url, id)
    await resealClient(db, id, 'sealedDirectUrl', { from: sealedDirectUrl, to })
  }
}
