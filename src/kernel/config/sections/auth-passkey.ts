import { Type } from 'typebox'
import { domainForm, passkeyOriginForm } from '../addresses.ts'
import { flag, list, section, text } from '../setting.ts'

/** auth.md 8. */
export const passkey = section('Passkeys.', {
  rp_id: Type.Optional(
    text(
      'Domain that passkeys are made for: the host of all auth.passkey.origins, or a domain above it. A change makes all passkeys useless.',
      { absent: 'the host of server.public_url' },
      domainForm,
    ),
  ),
  origins: list(
    'Origins whose pages and apps may use passkeys. Empty: only that of server.public_url.',
    passkeyOriginForm,
  ),
  require_user_verification: flag(
    'Whether the authenticator has to check a PIN, a fingerprint or a face. Otherwise a passkey without that is one factor of two.',
    { default: false },
  ),
})
