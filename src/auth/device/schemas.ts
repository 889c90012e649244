import { Type } from 'typebox'

/** As typed by a user. */
export const UserCode = Type.String({
  maxLength: 64,
  examples: ['WDJB-MJHT'],
  description: 'The code that the device shows, in either case, with or without the hyphen',
})

/** Failures of looking for it. */
export const USER_CODE_FAILURES = ['INVALID_USER_CODE', 'EXPIRED_USER_CODE']
/** Failures of an answer to the device. */
export const ANSWER_FAILURES = [...USER_CODE_FAILURES, 'DEVICE_CODE_ALREADY_PROCESSED']
