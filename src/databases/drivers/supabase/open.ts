import { limitsOf } from '#databases/drivers/client-limits.ts'
import type { Driver, DriverContext, DriverSettings } from '#databases/drivers/driver.ts'
import { createSupabaseDriver } from '#databases/drivers/supabase/driver.ts'
import { createDirectRequests } from '#kernel/http/outbound/outbound.ts'

/** Opens the driver of a configured or registered client. */
export function openSupabase({ config }: DriverContext, settings: DriverSettings): Driver {
  const limits = limitsOf(settings)
  return createSupabaseDriver({
    ...endpointOf(settings.url),
    ...createDirectRequests(limits),
    ...limits,
    maxRows: config.gateway.max_rows,
    answerBytes: config.limits.answer,
    readOnly: settings.readOnly,
  })
}

/** The password of the URL is the key. Supabase serves PostgREST below /rest/v1, and shows the URL without it. */
function endpointOf(text: string): { readonly root: string; readonly key: string | undefined } {
  const { origin, pathname, password } = new URL(text)
  const path = pathname === '/' ? '/rest/v1' : withoutSlashes(pathname)
  return { root: `${origin}${path}`, key: password === '' ? undefined : decodeURIComponent(password) }
}

function withoutSlashes(path: string): string {
  let end = path.length
  while (path[end - 1] === '/') end--
  return path.slice(0, end)
}
