import { EVERY_FEATURE } from '#test/every-feature.ts'
import { startTokenServer } from '#test/token-server.ts'

/** Settings with which every verb can be carried out (verbs.ts). */
export async function raceSettings() {
  const provider = await startTokenServer()
  return {
    auth: {
      email: { sign_in_after_verification: true },
      password: { queue: 500 },
      admin: { allow_impersonating_admins: true },
      ...EVERY_FEATURE,
      social: { providers: { acme: provider.settings, github: provider.settings } },
      device: { clients: { tv: {} } },
    },
    outbound: { allow_http: true, allow_networks: ['127.0.0.0/8'] },
  }
}
