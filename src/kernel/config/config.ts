import { type ConfigFacts, fillDefaults, type Values } from './defaults.ts'
import { emptied, treeOfEnvironment } from './environment.ts'
import { type ConfigSource, type GivenOption, treeOfFile } from './file.ts'
import { type ListedSetting, listed } from './listed.ts'
import { ConfigError, type Problem, placeText, type Report } from './problems.ts'
import { isOff, readSettings } from './read.ts'
import { brokenRules } from './rules.ts'
import { BUILT_IN_CLIENT } from './sections/database.ts'
import { type Config, settings } from './settings.ts'
import { described, masked, type SettingDescription } from './show.ts'
import { merge, nest, placesIn, type Tree, treeAt } from './tree.ts'

export { ConfigError, type Problem } from './problems.ts'
export { type Config, settings } from './settings.ts'

type DeepPartial<T> = T extends readonly (infer Item)[]
  ? readonly DeepPartial<Item>[]
  : T extends object
    ? { [K in keyof T]?: DeepPartial<T[K]> }
    : T

/**
 * Reads the file that `file` or SERVICE_CONFIG names, else `gatehouse.yaml` in `cwd` if it exists. The environment beats the
 * file, and options of the command line beat both. Throws a ConfigError with all problems.
 */
export function loadConfig(source: ConfigSource): Config {
  const problems: Problem[] = []
  const report: Report = (place, setting, says) => problems.push({ ...place, setting, says })
  const file = treeOfFile(source, report)
  // Without the file, the other problems would be guesses.
  if (problems.length > 0 && !file) throw new ConfigError(problems)
  const environment = treeOfEnvironment(settings, source.env, report)
  const given = (source.options ?? []).map(treeOfOption)
  const tree = [...(file ? [file] : []), environment, ...given].reduce(merge)
  const config = completed(readSettings(settings, tree, report), {
    production: source.env.NODE_ENV === 'production',
    builtInClient: !isOff(treeAt(tree, ['clients', BUILT_IN_CLIENT])),
    sources: Object.fromEntries(placesIn(tree).map(([name, place]) => [name, placeText(place)])),
  })
  problems.push(
    ...brokenRules(config, tree, problems),
    ...emptied(settings, source.env, (path) => treeAt(tree, path)),
  )
  if (problems.length > 0) throw new ConfigError(problems)
  return config
}

function treeOfOption({ option, setting, text }: GivenOption): Tree {
  const place = { source: option }
  return nest(setting.split('.'), { kind: 'text', text, place })
}

/** For tests: the defaults without file and environment, with unchecked overrides. */
export function defaultConfig(overrides: DeepPartial<Config> = {}): Config {
  const { production = false, builtInClient = true, ...given } = overrides
  return completed(given, { production, builtInClient, sources: {} })
}

// The values were read by this schema, and `fillDefaults` leaves out only what is optional.
const completed = (given: Values, facts: ConfigFacts) => fillDefaults(settings, given, facts) as Config

/** For `gatehouse config show`: values as they are written in the file, secrets masked. */
export const maskedConfig = (config: Config): Values => masked(settings, config)

/** Every setting with its value, default and source, secrets masked: for the operator, by command and by route. */
export const listSettings = (config: Config): readonly ListedSetting[] => listed(settings, config)

/** Every setting, for the documentation. */
export const describeConfig = (): SettingDescription[] => described(settings)
