import type { Rule } from './rule.ts'
import type { Config } from './settings.ts'

/** Rules about hooks. */
export const hookRules = ({ auth: { hooks, jwt }, outbound }: Config): Rule[] =>
  Object.entries(hooks).flatMap(([name, { url, on }]) => {
    const at = `auth.hooks.${name}`
    return [
      {
        settings: [`${at}.url`, 'outbound.allow_http', at],
        broken: () => url.startsWith('http:') && !outbound.allow_http,
        says: 'needs https, or outbound.allow_http: true',
      },
      {
        settings: [`${at}.on`, at],
        broken: () => on.length === 0 || new Set(on).size < on.length,
        says: 'names what the hook is called before, each once: sign_up, sign_in, token',
      },
      {
        settings: [`${at}.on`, 'auth.jwt.enabled', at],
        broken: () => on.includes('token') && !jwt.enabled,
        says: 'has token, which needs auth.jwt.enabled: true',
      },
    ]
  })
