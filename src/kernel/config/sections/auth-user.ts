import { Type } from 'typebox'
import { type Form, textForm } from '../forms.ts'
import { choice, flag, list, named, section, text } from '../setting.ts'

/** Members of users, and of the bodies in which fields are sent beside them. */
const BUILT_IN = [
  ...[
    'id',
    'name',
    'email',
    'emailVerified',
    'emailProvenAt',
    'image',
    'username',
    'displayUsername',
    'role',
  ],
  ...[
    'banned',
    'banReason',
    'banExpires',
    'twoFactorEnabled',
    'keepsFactor',
    'verifiedByAdmin',
    'fields',
    'isAnonymous',
  ],
  ...[
    'permissionLostAt',
    'devicesEndedAt',
    'createdAt',
    'updatedAt',
    'password',
    'passwordHash',
    'accountId',
  ],
  ...[
    'userId',
    'data',
    'user',
    'session',
    'token',
    'otp',
    'type',
    'query',
    'callbackURL',
    'newUserCallbackURL',
  ],
  ...['errorCallbackURL', 'rememberMe', 'fetchOptions', 'prototype', 'toJSON', 'then'],
  ...Object.getOwnPropertyNames(Object.prototype),
]
const TAKEN = new Set(BUILT_IN.map((name) => name.toLowerCase()))

/** Without underscores: rows of the database are read in camelCase, so two spellings would be one name. */
const fieldNameForm: Form<string> = {
  name: 'field name',
  allowed:
    'a name of at most 40 letters and digits in camelCase, like phoneNumber, and none of a built-in member',
  parse: (name) =>
    /^[a-z][A-Za-z0-9]{0,39}$/.test(name) && !TAKEN.has(name.toLowerCase()) ? name : undefined,
  write: (name) => name,
}

const valueForm = textForm(
  'value',
  /^(?! )[^,]{1,255}(?<! )$/u,
  'at most 255 characters without commas, and without spaces around',
)

/** Like `user.additionalFields` of better-auth. */
export const user = section('Users.', {
  fields: named(
    'Fields of users besides the built-in ones.',
    fieldNameForm,
    section('A field of users.', {
      type: choice(
        'Type of the values. Dates are ISO 8601.',
        ['string', 'number', 'boolean', 'date', 'string[]', 'number[]'],
        { default: 'string' },
      ),
      values: list('For texts: the only ones that are allowed; empty allows all.', valueForm),
      required: flag('Whether every new user needs a value.', { default: false }),
      input: flag('Whether users can set it; otherwise only admins can.', { default: true }),
      returned: flag('Whether answers contain it.', { default: true }),
      unique: flag('Whether no two users can have the same value.', { default: false }),
      default: Type.Optional(
        text('Value of a new user for whom none is given; a list is joined by commas.', { absent: 'none' }),
      ),
    }),
  ),
})
