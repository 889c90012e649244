declare const problem: unique symbol

/** In place of a row: says what is wrong with the columns. */
export interface SelectError<Message extends string> {
  readonly [problem]: Message
}
