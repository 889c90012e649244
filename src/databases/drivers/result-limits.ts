import { fail } from '#databases/failures.ts'

/** `gateway.max_rows` limits the rows of a fetch and those of its relations together. */
export const tooManyRelated = (maximum: number) =>
  fail('result_too_large', {
    message: `There are more than ${maximum} rows with those of relations (gateway.max_rows)`,
    hint: 'Ask for fewer rows, or read the relation by itself.',
    details: { maximum },
  })

/** `limits.answer` limits an answer that is collected before it is sent. */
export const answerTooLarge = (maximum: number, hint = 'Ask for fewer rows or columns.') =>
  fail('result_too_large', {
    message: `The answer is larger than ${maximum} bytes (limits.answer)`,
    hint,
    details: { maximum_bytes: maximum },
  })

/** The memory for answers of slow readers is used up. */
export const readerTooSlow = () =>
  fail('result_too_large', {
    message: 'The answer is too large for a reader this slow while other readers are slow too',
    hint: 'Ask for fewer rows, or read faster.',
  })
