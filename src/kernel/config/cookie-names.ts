import { textForm } from './forms.ts'

/** RFC 6265 section 4.1.1, where a name is a token of RFC 2616. */
export const cookieNameForm = textForm(
  'cookie name',
  /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/,
  "1 to 128 letters, digits or !#$%&'*+-.^_`|~",
)
