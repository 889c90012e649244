/** The source of a value: a line of the file, an environment variable or an option. */
export type Place = { readonly source: string; readonly line?: number }

export type Problem = Place & {
  /** Dotted name; empty for a problem of the whole file. */
  readonly setting: string
  readonly says: string
}

export type Report = (place: Place, setting: string, says: string) => void

/** All problems of the configuration. The message is ready to print. */
export class ConfigError extends Error {
  readonly problems: readonly Problem[]

  constructor(problems: readonly Problem[]) {
    // The file from top to bottom, then the environment.
    const sorted = problems.toSorted((a, b) => (a.line ?? Number.MAX_VALUE) - (b.line ?? Number.MAX_VALUE))
    super(sorted.map(inWords).join('\n'))
    this.name = 'ConfigError'
    this.problems = sorted
  }
}

export const placeText = ({ source, line }: Place): string =>
  line === undefined ? source : `${source}:${line}`

function inWords({ setting, says, ...from }: Problem): string {
  const place = placeText(from)
  return setting === '' ? `${place}: ${says}` : `${place} ${setting}: ${says}`
}
