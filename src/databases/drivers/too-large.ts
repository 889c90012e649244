import { fail } from '#databases/failures.ts'

/** An answer that is collected before it is sent (`limits.answer`). */
export const answerTooLarge = (maximum: number, hint = 'Ask for fewer rows or columns.') =>
  fail('result_too_large', {
    message: `The answer is larger than ${maximum} bytes (limits.answer)`,
    hint,
    details: { maximum_bytes: maximum },
  })
