import type { Kernel } from '#kernel/kernel.ts'

/** A URL of this surface for a mail or a redirect. It is built from configuration, never from the request's headers. */
export function authUrl(
  kernel: Pick<Kernel, 'config' | 'publicUrl'>,
  path: string,
  query: Record<string, string | undefined> = {},
): string {
  const url = new URL(`${kernel.config.auth.base_path}${path}`, kernel.publicUrl())
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) url.searchParams.set(name, value)
  return url.href
}
