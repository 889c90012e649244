import { type CustomFields, fieldsIn, newFields, type RefuseField } from '#identity/custom-fields.ts'
import { fieldRule, fieldValueOfText } from '#kernel/field-values.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { WrongUsage } from './wrong-usage.ts'

export const FIELD_ARGUMENT = 'a field of auth.user.fields; can be repeated'

/** For an option that can be repeated. */
export const collected = (value: string, before: readonly string[]): readonly string[] => [...before, value]

/** The custom fields of a new user, from texts like plan=pro; those of a list are joined by commas. */
export function givenFields({ config }: Kernel, texts: readonly string[]): CustomFields | null {
  const refuse: RefuseField = (_problem, message) => {
    throw new WrongUsage(`${message} (--field NAME=VALUE).`)
  }
  const given = texts.map((text) => {
    const [, name = '', value = ''] = /^([^=]*)=(.*)$/s.exec(text) ?? []
    const field = Object.hasOwn(config.auth.user.fields, name) ? config.auth.user.fields[name] : undefined
    if (field === undefined) throw new WrongUsage(`--field ${text} names no field of auth.user.fields.`)
    return [name, fieldValueOfText(field, value) ?? refuse('invalid', `${name} must be ${fieldRule(field)}`)]
  })
  return newFields(config, fieldsIn(config, Object.fromEntries(given), { by: 'operator', refuse }), refuse)
}
