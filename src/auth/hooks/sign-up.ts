import { type CustomFields, changeFields, fieldsIn, type RefuseField } from '#identity/custom-fields.ts'
import type { NewUser } from '#identity/users.ts'
import { type HookAnswer, HookProblem } from '#kernel/hooks/answer.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { answeredOutside, outsideAnswer } from '#kernel/outside-answers.ts'
import { translatingRefusals } from './refusals.ts'
import { sourceOf, toldEmail } from './source.ts'

/** A way of becoming a user, as hooks are told it. */
export type SignUpMethod = 'email' | 'magic_link' | 'email_otp' | 'anonymous' | 'passkey' | `social:${string}`

type Newcomer = Pick<NewUser, 'email' | 'name' | 'username' | 'emailVerified' | 'fields'>

type SignUp = {
  readonly method: SignUpMethod
  /** Of an anonymous user who becomes a known one. */
  readonly userId?: string
}

type BeforeSignUp = {
  /** With those of the hooks, once they have answered. */
  readonly fields: CustomFields | null
  /** To be called when all else is done: so hooks hear only of sign-ups that nothing else refuses. Throws until they have agreed. */
  readonly expectConsent: () => void
}

/** The hooks before a sign-up, in the transaction that adds the user. */
export function beforeSignUp(kernel: Kernel, newcomer: Newcomer, { method, userId }: SignUp): BeforeSignUp {
  const given = newcomer.fields ?? null
  if (!kernel.hooks.has('sign_up')) return { fields: given, expectConsent: () => {} }
  const data = {
    email: toldEmail(newcomer.email),
    email_verified: newcomer.emailVerified,
    name: newcomer.name,
    username: newcomer.username,
    fields: given ?? {},
    method,
    user_id: userId ?? null,
    ...sourceOf(kernel),
  }
  const key = `sign_up ${JSON.stringify(data)}`
  const ask = (kernel: Kernel): Promise<CustomFields | null> =>
    translatingRefusals(kernel, { action: 'sign_up.failed', targetId: userId }, async () => {
      let fields = given
      await kernel.hooks.ask('sign_up', { data, address: kernel.origin.ipAddress }, (answer) => {
        fields = withAnswered(kernel, fields, answer)
      })
      return fields
    })
  return {
    fields: answeredOutside<CustomFields | null>(kernel, key) ?? given,
    expectConsent: () => void outsideAnswer(kernel, key, ask),
  }
}

/** A hook may set what only admins may. */
function withAnswered(
  { config }: Kernel,
  before: CustomFields | null,
  { fields: answered = {} }: HookAnswer,
): CustomFields | null {
  const isKnown = Object.keys(answered).every((name) => Object.hasOwn(config.auth.user.fields, name))
  if (!isKnown) throw new HookProblem('its fields are not all in auth.user.fields')
  const change = fieldsIn(config, answered, { by: 'operator', refuse: unfit })
  return Object.keys(change).length === 0 ? before : changeFields({ fields: before }, change, unfit)
}

const unfit: RefuseField = (_problem, message) => {
  // The message has the name of the field and its rule, nothing of the answer.
  throw new HookProblem(`its fields do not fit: ${message}`)
}
