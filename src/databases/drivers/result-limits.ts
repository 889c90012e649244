import { fail } from '#databases/failures.ts'

/** One budget for the rows of a fetch and those of its relations (`gateway.max_rows`). */
export const tooManyRelated = (maximum: number) =>
  fail('result_too_large', {
    message: `The rows and those of their relations are more than ${maximum} (gateway.max_rows)`,
    hint: 'Ask for fewer rows, or read the relation by itself.',
    details: { maximum },
  })

/** An answer that is collected before it is sent (`limits.answer`). */
export const answerTooLarge = (maximum: number, hint = 'Ask for fewer rows or columns.') =>
  fail('result_too_large', {
    message: `The answer is larger than ${maximum} bytes (limits.answer)`,
    hint,
    details: { maximum_bytes: maximum },
  })
