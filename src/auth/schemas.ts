import { type TProperties, type TStringOptions, Type } from 'typebox'
import { COUNT_MODES, COUNTED } from '#kernel/db/total.ts'
import { OneOf } from '#kernel/http/schemas.ts'

/** Schemas that the requests and answers of several features share. */

export const Email = Type.String({ maxLength: 320, examples: ['ada@example.com'] })

/** As typed. New passwords are checked against the policy later (password-policy.ts). */
export const Password = (more: TStringOptions = {}) =>
  Type.String({ maxLength: 1_024, examples: ['correct horse battery'], ...more })

/** A code of the second factor: of an authenticator app, by mail, or a backup code. */
export const Code = (more: TStringOptions = {}) =>
  Type.String({ maxLength: 64, examples: ['287082'], ...more })

/** The token of a mailed link. */
export const LinkToken = Type.String({ maxLength: 256 })

/** A URL to redirect the browser to. The route has to name it in `redirects`, so that it is judged. */
export const CallbackUrl = (description?: string) =>
  Type.Optional(Type.String(description === undefined ? {} : { description }))

export const RememberMe = Type.Optional(
  Type.Boolean({
    default: true,
    description: 'False: the session ends with the browser, after a day at the latest',
  }),
)

export const Status = Type.Object({ status: Type.Boolean() })

export const Succeeded = Type.Object({ success: Type.Boolean() })
export const SUCCESS = { success: true }

/** The parameter of a list that tells how to count. */
export const COUNT = {
  count: Type.Optional(
    OneOf(COUNT_MODES, { default: 'estimated', description: `How \`total\` is found beyond ${COUNTED}` }),
  ),
} satisfies TProperties

/** Members of the answer of a list, beside the page. */
export const TOTAL = {
  total: Type.Integer({
    description: `All that fit: exact to ${COUNTED}, beyond that an estimate, unless \`count=exact\`. The last page is exact`,
  }),
  totalEstimated: Type.Boolean({ description: 'Whether `total` is an estimate' }),
} satisfies TProperties
