import pg from 'pg'

/**
 * Values as pg sends them. One that it cannot write fails here, before anything is sent: of a statement with a name, pg would close the name and
 * still take it for prepared.
 */
export const writtenValues = (values: readonly unknown[]): (string | Buffer | null)[] =>
  values.map((value) => utils.prepareValue(value))

/** Not in pg's types. */
const { utils } = pg as unknown as {
  readonly utils: { prepareValue(value: unknown): string | Buffer | null }
}
