import type { Config } from './settings.ts'

/** A rule about several settings. Its problem is reported for the first one, at the place of its value. */
export type Rule = {
  readonly settings: readonly string[]
  readonly broken: (config: Config) => boolean
  readonly says: string
}
