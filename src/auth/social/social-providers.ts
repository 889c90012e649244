import type { Config } from '#kernel/config/config.ts'
import { fail } from '../errors.ts'
import { createProviderClient, type ProviderClient, type ProviderKernel } from './client/provider-client.ts'
import { oauth2, oidc } from './providers/generic.ts'
import { PROVIDERS } from './providers/index.ts'
import type { Provider, ProviderSettings } from './providers/provider.ts'

/** The configured providers of a process. */
export type SocialProviders = {
  /** Throws PROVIDER_NOT_FOUND. */
  find(name: string): ProviderClient
  has(name: string): boolean
  list(): readonly ProviderClient[]
}

export function createSocialProviders(kernel: ProviderKernel): SocialProviders {
  const clients = new Map(
    Object.entries(kernel.config.auth.social.providers).flatMap(([name, settings]) => {
      const provider = providerFor(name, settings)
      return provider === undefined ? [] : [[name, createProviderClient(kernel, name, provider, settings)]]
    }),
  )
  return {
    find(name) {
      const found = clients.get(name)
      if (found === undefined) throw fail('PROVIDER_NOT_FOUND')
      return found
    },
    has: (name) => clients.has(name),
    list: () => [...clients.values()],
  }
}

/** Problems of the settings that only the list of providers shows, one sentence each. They stop the start. */
export const socialProblems = ({ auth: { social } }: Config): readonly string[] =>
  Object.entries(social.providers).flatMap(([name, settings]) => problemsOf(name, settings))

function problemsOf(name: string, settings: ProviderSettings): readonly string[] {
  const at = `auth.social.providers.${name}`
  const provider = providerFor(name, settings)
  if (provider === undefined) {
    const builtIn = Object.keys(PROVIDERS).join(', ')
    return [`${at}.type: set oidc or oauth2, since ${name} is not built in (built in are ${builtIn})`]
  }
  return (provider.settings ?? [])
    .filter((setting) => settings[setting] === undefined)
    .map((setting) => `${at}.${setting}: is required for ${name}`)
}

function providerFor(name: string, { type }: ProviderSettings): Provider | undefined {
  if (type === 'oidc') return oidc
  if (type === 'oauth2') return oauth2
  return Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name] : undefined
}
