import { fieldRule, fieldValueOfText } from '../field-values.ts'
import type { Rule } from './rule.ts'
import type { Config } from './settings.ts'

/** Rules about fields of users. */
export const fieldRules = ({ auth: { user } }: Config): Rule[] =>
  Object.entries(user.fields).flatMap(([name, field]) => {
    const at = `auth.user.fields.${name}`
    const { type, values, required, input, unique, default: otherwise } = field
    return [
      {
        settings: [`${at}.values`, `${at}.type`],
        broken: () => values.length > 0 && type !== 'string' && type !== 'string[]',
        says: `needs ${at}.type string or string[]`,
      },
      {
        settings: [`${at}.values`],
        broken: () => new Set(values).size < values.length,
        says: 'names a value twice',
      },
      {
        settings: [`${at}.unique`, `${at}.type`],
        broken: () => unique && !['string', 'number', 'date'].includes(type),
        says: `needs ${at}.type string, number or date`,
      },
      {
        settings: [`${at}.unique`, `${at}.default`],
        broken: () => unique && otherwise !== undefined,
        says: 'excludes a default, which the second user could not have',
      },
      {
        settings: [`${at}.default`, `${at}.type`, `${at}.values`],
        broken: () => otherwise !== undefined && fieldValueOfText(field, otherwise) === undefined,
        says: `must be ${fieldRule(field)}`,
      },
      {
        settings: [`${at}.required`, `${at}.input`, `${at}.default`],
        broken: () => required && !input && otherwise === undefined,
        says: `needs ${at}.input: true or a default, otherwise nobody can sign up`,
      },
    ]
  })
