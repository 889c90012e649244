import { availableParallelism } from 'node:os'
import { Type } from 'typebox'
import { originForm, serviceUrlForm, webUrlForm } from '../addresses.ts'
import { colourForm } from '../colours.ts'
import { textForm } from '../forms.ts'
import { choice, duration, flag, integer, list, section, text } from '../setting.ts'
import { admin } from './auth-admin.ts'
import { anonymous } from './auth-anonymous.ts'
import { captcha } from './auth-captcha.ts'
import { device } from './auth-device.ts'
import { hooks } from './auth-hooks.ts'
import { jwt } from './auth-jwt.ts'
import { lastLoginMethod } from './auth-last-login-method.ts'
import { emailOtp, magicLink } from './auth-mail.ts'
import { multiSession } from './auth-multi-session.ts'
import { oneTimeToken } from './auth-one-time-token.ts'
import { organization } from './auth-organization.ts'
import { passkey } from './auth-passkey.ts'
import { social } from './auth-social.ts'
import { twoFactor } from './auth-two-factor.ts'
import { user } from './auth-user.ts'

const pathForm = textForm(
  'path',
  /^(\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$/,
  'a path with one leading slash and none at the end, like /api/auth',
)

const nameForm = textForm('name', /^\P{C}{1,60}$/u, 'one line of at most 60 characters')

/** auth.md 3; Argon2id. */
const password = section('How passwords are hashed (Argon2id).', {
  memory: integer('Memory of one hash, in KiB.', { min: 1024, max: 4_194_304 }, { default: 19_456 }),
  iterations: integer('Passes over the memory.', { min: 1, max: 100 }, { default: 2 }),
  parallelism: integer('Lanes of one hash.', { min: 1, max: 64 }, { default: 1 }),
  concurrency: integer(
    'Hashes that run at once in a process.',
    { min: 1, max: 256 },
    { derived: { says: 'processors − 1, at least 1', from: () => Math.max(1, availableParallelism() - 1) } },
  ),
  queue: integer(
    'Hashes that may wait; beyond it the answer is 503 with Retry-After.',
    { min: 0, max: 100_000 },
    { default: 100 },
  ),
})

const emailPassword = section('Sign-up and sign-in with email and password.', {
  enable_signup: flag('Whether sign-up is enabled.', { default: true }),
  require_email_verification: flag('Whether sign-in needs a verified email address.', { default: false }),
  // auth.md 3: the longest password has 128 characters, so that hashing is bounded.
  password_min_length: integer('Shortest password, in characters.', { min: 1, max: 128 }, { default: 8 }),
  refuse_common: flag('Whether the most common passwords are refused.', { default: false }),
  breach_check_url: Type.Optional(
    text(
      'Service that lists breached passwords, like https://api.pwnedpasswords.com/range: it receives the first 5 of the 40 digits of the SHA-1 hash.',
      { absent: 'no such check', secret: 'password' },
      serviceUrlForm,
    ),
  ),
  breach_check_file: Type.Optional(
    text(
      'List of breached passwords, made by `gatehouse breach-list build`. A replaced file is used at once.',
      {
        absent: 'no such check',
      },
    ),
  ),
  breach_check_on_failure: choice(
    'Whether a password passes when a breach check fails: `open` lets it pass, `closed` refuses it with 503.',
    ['open', 'closed'],
    { default: 'open' },
  ),
})

const sessionManagement = section('The session endpoints.', {
  require_authentication: flag(
    'Whether get-session, list-sessions, sign-out and revoke-* answer 401 to callers without a session.',
    {
      default: true,
    },
  ),
  enable_session_listing: flag('Whether the endpoint list-sessions exists.', { default: true }),
  enable_session_revocation: flag('Whether the revoke-* endpoints exist.', { default: true }),
})

const pageOf = (what: string) =>
  Type.Optional(
    text(
      `Page of your application for the link in a mail to ${what}; its query has \`token\` and \`callbackURL\`.`,
      { absent: 'a page of the service' },
      webUrlForm,
    ),
  )

/** auth.md 4, "Links". */
const links = section(
  'Pages of your application that links in mails lead to; these pages call the endpoints.',
  {
    verify: pageOf('verify an address'),
    change: pageOf('change the address'),
    delete: pageOf('delete the account'),
    reset: pageOf('choose a new password'),
    magic_link: pageOf('sign in'),
    invitation: Type.Optional(
      text(
        'Page of your application for the link in an invitation to an organization; its query has `id`.',
        { absent: 'a page of the service' },
        webUrlForm,
      ),
    ),
  },
)

const email = section('Verification of email addresses.', {
  verification_enabled: flag('Whether verification mails can be requested.', { default: true }),
  send_on_sign_up: flag('Whether sign-up sends a verification mail.', {
    derived: {
      says: 'as auth.email_password.require_email_verification',
      from: ({ value }) => value('auth.email_password.require_email_verification') === true,
    },
  }),
  verification_expires_in: duration('Lifetime of the link.', ['1h', '1m', '30d']),
  sign_in_after_verification: flag('Whether the link also signs the user in.', { default: false }),
  links,
  direct_links: flag(
    'Whether links in mails act as soon as they are opened, instead of leading to a page with a button: mail scanners that open links then use them up.',
    { default: false },
  ),
})

const pages = section('The pages that links in mails lead to.', {
  name: Type.Optional(
    text('Name of the service on these pages.', { absent: 'the host of server.public_url' }, nameForm),
  ),
  logo_url: Type.Optional(text('Image at the top of each page.', { absent: 'none' }, webUrlForm)),
  accent: text('Colour of buttons.', { default: '#1d4ed8' }, colourForm),
})

const deleteUser = section('Deletion of accounts by their users.', {
  enabled: flag('Whether users can delete their accounts.', { default: true }),
})

export const auth = section('Authentication.', {
  base_path: text('Path of all its endpoints.', { default: '/api/auth' }, pathForm),
  trusted_origins: list(
    'Further origins whose pages may send requests with a cookie and be redirect targets.',
    originForm,
  ),
  require_origin: flag(
    'Whether requests with a cookie, but without Origin, Sec-Fetch-Site and Referer, are refused.',
    {
      default: false,
    },
  ),
  hide_registered_emails: flag(
    'Whether sign-up with a registered email address answers like a success; needs auth.email_password.require_email_verification.',
    { default: false },
  ),
  password,
  email_password: emailPassword,
  session_management: sessionManagement,
  email,
  magic_link: magicLink,
  email_otp: emailOtp,
  anonymous,
  pages,
  delete_user: deleteUser,
  two_factor: twoFactor,
  captcha,
  device,
  admin,
  passkey,
  organization,
  social,
  one_time_token: oneTimeToken,
  multi_session: multiSession,
  last_login_method: lastLoginMethod,
  user,
  jwt,
  hooks,
})
