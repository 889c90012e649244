import type { Rule } from './rule.ts'
import type { HookPoint } from './sections/auth-hooks.ts'
import type { Config } from './settings.ts'

/** Rules about hooks. */
export const hookRules = (config: Config): Rule[] => [...rulesOfEach(config), ...rulesOfAll(config)]

const rulesOfEach = ({ auth: { hooks, jwt }, outbound }: Config): Rule[] =>
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

/** The points that one request may pass. */
const IN_ONE_REQUEST: readonly (readonly HookPoint[])[] = [['sign_up', 'sign_in'], ['token']]

/** A request waits for its hooks one after the other. */
function rulesOfAll({ auth: { hooks }, limits }: Config): Rule[] {
  const named = Object.keys(hooks).map((name) => `auth.hooks.${name}`)
  const settings = [
    'auth.hooks',
    'limits.timeout',
    ...named.flatMap((at) => [at, `${at}.on`, `${at}.timeout`]),
  ]
  const longest = (points: readonly HookPoint[]): number =>
    Object.values(hooks)
      .map(({ on, timeout }) => timeout * points.filter((point) => on.includes(point)).length)
      .reduce((sum, each) => sum + each, 0)
  return IN_ONE_REQUEST.map((points) => ({
    settings,
    broken: () => longest(points) >= limits.timeout,
    says: `before ${points.join(' and ')} the timeouts of all hooks together must be less than limits.timeout, since one request waits for all of them`,
  }))
}
