import { isDeepStrictEqual } from 'node:util'

/** The asked fields whose values differ in the two versions of a row. Without one, nothing has happened that an act could tell. */
export const changedFields = <Row extends object>(
  before: Row,
  after: Row,
  asked: Partial<Row>,
): (keyof Row & string)[] =>
  (Object.keys(asked) as (keyof Row & string)[]) // keys of a part of the row
    .filter((name) => !isDeepStrictEqual(before[name], after[name]))
