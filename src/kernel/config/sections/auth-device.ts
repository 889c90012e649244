import { Type } from 'typebox'
import { webUrlForm } from '../addresses.ts'
import { textForm } from '../forms.ts'
import { duration, list, named, section, text } from '../setting.ts'

const clientIdForm = textForm(
  'client id',
  /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
  'a letter or digit, then up to 62 letters, digits, ".", "_" or "-"',
)
const clientNameForm = textForm('name', /^\P{C}{1,60}$/u, 'one line of at most 60 characters')
/** RFC 6749, 3.3. */
const scopeForm = textForm('scope', /^[!#-+\--[\]-~]{1,256}$/, 'one scope, without spaces and commas')

const client = section('A program that asks for sessions.', {
  name: Type.Optional(
    text('Name on the page on which users approve it.', { absent: 'its client id' }, clientNameForm),
  ),
  scopes: list(
    'Scopes that the program is told it has. They restrict nothing: a session can do what its user can do.',
    scopeForm,
  ),
})

/** RFC 8628. */
export const device = section('Sessions for devices and programs without a browser.', {
  clients: named(
    'Programs that may ask for a session, by client id. Without one, nobody can. `gatehouse login` has the client id gatehouse.',
    clientIdForm,
    client,
  ),
  expires_in: duration('Time in which the user has to answer.', ['10m', '1m', '30m']),
  interval: duration('Time between two polls of a device.', ['5s', '1s', '1m']),
  page_url: Type.Optional(
    text(
      'Page of your application on which users enter the code of a device; its query may have `user_code`.',
      { absent: 'a page of the service' },
      webUrlForm,
    ),
  ),
})
