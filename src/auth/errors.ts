import { defineFailures, type FailureTable } from '#kernel/errors.ts'
import { EDGE_FAILURES } from '#kernel/http/failures.ts'

/** The expected failures of the authentication surface. */
export const AUTH_FAILURES = {
  UNAUTHORIZED: [401, 'Sign in first'],

  INVALID_EMAIL: [400, 'The email address is not valid'],
  INVALID_USERNAME: [
    400,
    'A username has 3 to 30 characters of a-z, 0-9, "_" and "."; displayUsername may differ from it by case only',
  ],
  PASSWORD_TOO_SHORT: [400, 'The password is too short'],
  PASSWORD_TOO_LONG: [400, 'The password is longer than 128 characters'],
  PASSWORD_COMMON: [400, 'The password is too common; choose another'],
  PASSWORD_COMPROMISED: [400, 'The password is known from a breach; choose another'],
  BREACH_CHECK_UNAVAILABLE: [503, 'The password could not be checked for breaches; try again shortly'],
  MISSING_RESPONSE: [400, 'Solve the captcha first; its solution goes into the header X-Captcha-Response'],
  VERIFICATION_FAILED: [403, 'The solution of the captcha is wrong, used or expired'],
  CAPTCHA_UNAVAILABLE: [503, 'The captcha cannot be checked; try again shortly'],
  USER_ALREADY_EXISTS: [409, 'An account with this email exists already'],
  USERNAME_IS_ALREADY_TAKEN: [409, 'The username is taken'],
  SIGN_UP_DISABLED: [403, 'Sign-up is disabled'],
  REFUSED_BY_HOOK: [403, 'The operator of this service does not allow this'],
  HOOK_UNAVAILABLE: [503, 'A service that has to agree does not answer; try again shortly'],

  INVALID_EMAIL_OR_PASSWORD: [401, 'The email or the password is wrong'],
  INVALID_USERNAME_OR_PASSWORD: [401, 'The username or the password is wrong'],
  EMAIL_NOT_VERIFIED: [403, 'Verify your email first; a new link was mailed'],
  PASSWORD_CHANGE_REQUIRED: [403, 'Choose a new password first; a link was mailed'],
  BANNED_USER: [403, 'This account is banned'],

  PASSWORD_SIGN_IN_REQUIRED: [
    403,
    'Sign in with the password: the second factor of this account is a code by mail',
  ],
  TWO_FACTOR_REQUIRED: [403, 'This account needs a second factor; set one up first'],

  WRONG_CODE: [401, 'The code is wrong or was used', 'INVALID_CODE'],
  INVALID_BACKUP_CODE: [401, 'The backup code is wrong or was used'],
  INVALID_TWO_FACTOR_COOKIE: [401, 'No sign-in waits for a second factor; sign in again'],
  OTP_HAS_EXPIRED: [400, 'The code has expired; ask for a new one'],
  OTP_NOT_ENABLED: [400, 'A code by mail is not a second factor here'],
  TOTP_NOT_ENABLED: [400, 'This account has no authenticator app'],
  TWO_FACTOR_NOT_ENABLED: [400, 'This account has no second factor'],
  TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE: [400, 'Too many wrong codes; ask for a new one, or sign in again'],
  ACCOUNT_TEMPORARILY_LOCKED: [429, 'Too many wrong codes; the second factor is locked for a while'],

  SESSION_NOT_FRESH: [403, 'Show again who you are, by one of details.accepts; or sign in again'],

  INVALID_CLIENT: [400, 'The program is not known here: its client id is not in auth.device.clients'],
  UNSUPPORTED_GRANT_TYPE: [400, 'grant_type must be urn:ietf:params:oauth:grant-type:device_code'],
  AUTHORIZATION_PENDING: [400, 'The user has not answered yet'],
  POLLING_TOO_FREQUENTLY: [400, 'Poll more slowly: wait 5 seconds longer, from now on'],
  DEVICE_DENIED: [400, 'The device was refused', 'ACCESS_DENIED'],
  INVALID_DEVICE_CODE: [400, 'The device code is not valid or has been used'],
  EXPIRED_DEVICE_CODE: [400, 'The device code has expired; ask for a new one'],
  INVALID_USER_CODE: [400, 'There is no such code; look again at the device'],
  EXPIRED_USER_CODE: [400, 'The code has expired; ask for a new one on the device'],
  DEVICE_CODE_ALREADY_PROCESSED: [400, 'The device was answered already'],

  INVALID_TOKEN: [401, 'The link is not valid or has been used'],
  INVALID_RESET_TOKEN: [400, 'The link is not valid or has been used', 'INVALID_TOKEN'],
  TOKEN_EXPIRED: [401, 'The link has expired'],
  INVALID_ONE_TIME_TOKEN: [
    400,
    'The token is not valid, was used, or has expired; ask for a new one in the session',
    'INVALID_TOKEN',
  ],
  INVALID_HANDOFF_CODE: [
    400,
    'The code is not valid, was used, or has expired; ask impersonate-user for a new one',
  ],
  TOO_MANY_DERIVED_SESSIONS: [403, 'This session comes from another one too many times over; sign in again'],
  INVALID_SESSION_TOKEN: [401, 'This browser has no such session'],
  VERIFICATION_EMAIL_NOT_ENABLED: [400, 'Verification mails are disabled'],

  INVALID_OTP: [400, 'The code is wrong or was used'],
  OTP_EXPIRED: [400, 'The code has expired; ask for a new one'],
  TOO_MANY_ATTEMPTS: [403, 'Too many wrong codes; ask for a new one'],
  TOO_MANY_WRONG_CODES: [
    429,
    'Too many wrong codes for this address within a day; use the link of the mail, or wait',
    'TOO_MANY_ATTEMPTS',
  ],

  EMAIL_IS_THE_SAME: [400, 'newEmail is the current email'],
  INVALID_PASSWORD: [400, 'The password is wrong'],
  PASSWORD_REQUIRED: [400, 'Send the password of this account, or a newPassword if you do not know it'],
  CREDENTIAL_ACCOUNT_NOT_FOUND: [400, 'This account has no password'],
  PASSWORD_ALREADY_SET: [400, 'This account has a password; change it instead'],
  EMAIL_CAN_NOT_BE_UPDATED: [400, 'Change the email with change-email'],
  FIELD_NOT_ALLOWED: [400, 'Only an admin may set this field'],
  MISSING_FIELD: [400, 'A required field is missing'],
  FIELD_VALUE_IS_ALREADY_TAKEN: [409, 'Another user has this value'],
  NO_FIELDS_TO_UPDATE: [400, 'The request changes no field'],
  DELETE_USER_DISABLED: [403, 'Deleting accounts is disabled'],
  LAST_ADMIN: [400, 'The last admin cannot be removed'],
  ACCOUNT_NOT_FOUND: [404, 'The account does not exist'],
  FAILED_TO_UNLINK_LAST_ACCOUNT: [400, 'The last way of signing in cannot be removed'],

  ANONYMOUS_USERS_CANNOT_SIGN_IN_AGAIN_ANONYMOUSLY: [400, 'This session is anonymous already'],
  USER_IS_ANONYMOUS: [
    403,
    'An anonymous user may not do this: add an address first, or a passkey or an account of a provider',
  ],
  USER_IS_NOT_ANONYMOUS: [403, 'This user is not anonymous'],

  TEMPLATE_NOT_FOUND: [404, 'There is no such template of tokens'],
  NOT_WHILE_IMPERSONATING: [403, 'An impersonated session may not do this'],
  USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION: [403, 'You are not a member of this organization'],
  NO_ACTIVE_ORGANIZATION: [400, 'Name an organization, or make one active with set-active'],
  ORGANIZATION_NOT_FOUND: [404, 'The organization does not exist'],
  ORGANIZATION_ALREADY_EXISTS: [400, 'An organization with this slug exists already'],
  ORGANIZATION_SLUG_ALREADY_TAKEN: [400, 'The slug is taken'],
  YOU_ARE_NOT_ALLOWED_TO_CREATE_A_NEW_ORGANIZATION: [403, 'You may not create organizations for other users'],
  YOU_HAVE_REACHED_THE_MAXIMUM_NUMBER_OF_ORGANIZATIONS: [
    403,
    'You are in too many organizations to create another',
  ],
  YOU_ARE_NOT_ALLOWED_TO_UPDATE_THIS_ORGANIZATION: [
    403,
    'Your role does not allow this change of the organization',
  ],
  YOU_ARE_NOT_ALLOWED_TO_DELETE_THIS_ORGANIZATION: [
    403,
    'Your role does not allow deleting the organization',
  ],
  YOU_ARE_NOT_ALLOWED_TO_INVITE_USERS_TO_THIS_ORGANIZATION: [403, 'Your role does not allow inviting users'],
  YOU_ARE_NOT_ALLOWED_TO_INVITE_USER_WITH_THIS_ROLE: [403, 'Your role does not allow giving this role'],
  YOU_ARE_NOT_ALLOWED_TO_CANCEL_THIS_INVITATION: [403, 'Your role does not allow canceling invitations'],
  YOU_ARE_NOT_ALLOWED_TO_UPDATE_THIS_MEMBER: [403, 'Your role does not allow this change of the member'],
  YOU_ARE_NOT_ALLOWED_TO_DELETE_THIS_MEMBER: [403, 'Your role does not allow removing the member'],
  YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER: [
    400,
    'The only owner cannot go; make another member owner first',
  ],
  YOU_CANNOT_LEAVE_THE_ORGANIZATION_WITHOUT_AN_OWNER: [
    400,
    'The only owner keeps the role; make another member owner first',
  ],
  SOLE_OWNER_OF_ORGANIZATION: [400, 'The only owner of an organization with other members cannot be removed'],
  USER_NOT_FOUND: [404, 'The user does not exist'],
  MEMBER_NOT_FOUND: [400, 'The organization has no such member'],
  ROLE_NOT_FOUND: [400, 'The role does not exist'],
  USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION: [400, 'The user is a member already'],
  USER_IS_ALREADY_INVITED_TO_THIS_ORGANIZATION: [
    400,
    'The user is invited already; send resend: true to mail again',
  ],
  INVITATION_NOT_FOUND: [400, 'The invitation does not exist, has expired, or is for another address'],
  INVITATION_LIMIT_REACHED: [403, 'The organization has too many pending invitations'],
  ORGANIZATION_MEMBERSHIP_LIMIT_REACHED: [403, 'The organization has no room for another member'],
  EMAIL_VERIFICATION_REQUIRED_FOR_INVITATION: [403, 'Verify your email to see invitations'],
  EMAIL_VERIFICATION_REQUIRED_BEFORE_ACCEPTING_OR_REJECTING_INVITATION: [
    403,
    'Verify your email to answer invitations',
  ],
  TEAMS_NOT_ENABLED: [400, 'There are no teams; leave teamId out'],
  PROVIDER_NOT_FOUND: [404, 'There is no such provider'],
  PROVIDER_UNAVAILABLE: [503, 'The provider does not answer; try again shortly'],
  PROVIDER_REFUSED: [400, 'The provider refused the request'],
  ID_TOKEN_NOT_SUPPORTED: [400, 'This provider has no ID tokens'],
  INVALID_ID_TOKEN: [401, 'The ID token is not valid', 'INVALID_TOKEN'],
  STATE_MISMATCH: [400, 'This sign-in was not begun in this browser, or took too long; begin again'],
  NO_CODE: [400, 'The provider has sent no code'],
  INVALID_CODE: [400, 'The provider does not accept the code'],
  UNABLE_TO_GET_USER_INFO: [400, 'The provider does not describe the account'],
  EMAIL_NOT_FOUND: [400, 'The provider names no email address for this account'],
  ACCOUNT_NOT_LINKED: [
    403,
    'There is an account with this email address; sign in to it, and link the provider there',
  ],
  NOT_SIGNED_IN_AGAIN: [403, 'Sign in at the provider again: it has only remembered you'],
  UNABLE_TO_LINK_ACCOUNT: [400, 'The account of the provider has another email address'],
  REFRESH_TOKEN_NOT_FOUND: [400, 'The provider has given no refresh token for this account'],
  TOKEN_REFRESH_NOT_SUPPORTED: [400, 'The provider of this account is not configured any more'],
  FAILED_TO_REFRESH_ACCESS_TOKEN: [400, 'The provider gives no new token for this account'],
  ACCOUNT_ALREADY_LINKED_TO_DIFFERENT_USER: [409, 'The account of the provider belongs to another user'],
  SOCIAL_ACCOUNT_ALREADY_LINKED: [409, 'The account of the provider is linked already'],

  CHALLENGE_NOT_FOUND: [400, 'The challenge is unknown, used or expired; ask for new options'],
  FAILED_TO_VERIFY_REGISTRATION: [400, 'The passkey could not be verified; the log says why'],
  AUTHENTICATION_FAILED: [401, 'The passkey could not be verified'],
  UNKNOWN_PASSKEY: [401, 'The passkey is not known here', 'PASSKEY_NOT_FOUND'],
  PASSKEY_NOT_FOUND: [404, 'The passkey does not exist'],
  PASSKEY_RP_ID_INVALID: [400, 'Passkeys need a domain: set server.public_url or auth.passkey.rp_id to one'],
  TOO_MANY_PASSKEYS: [400, 'The account has 100 passkeys; remove one first'],
  YOU_ARE_NOT_ALLOWED_TO_CREATE_USERS: [403, 'Your role may not create users'],
  YOU_ARE_NOT_ALLOWED_TO_LIST_USERS: [403, 'Your role may not list users'],
  YOU_ARE_NOT_ALLOWED_TO_GET_USER: [403, 'Your role may not see this user'],
  YOU_ARE_NOT_ALLOWED_TO_CHANGE_USERS_ROLE: [403, 'Your role may not change or give this role'],
  YOU_ARE_NOT_ALLOWED_TO_BAN_USERS: [403, 'Your role may not ban this user'],
  YOU_ARE_NOT_ALLOWED_TO_IMPERSONATE_USERS: [403, 'Your role may not impersonate this user'],
  YOU_ARE_NOT_ALLOWED_TO_DELETE_USERS: [403, 'Your role may not delete this user'],
  YOU_ARE_NOT_ALLOWED_TO_SET_USERS_PASSWORD: [403, 'Your role may not set the password of this user'],
  YOU_ARE_NOT_ALLOWED_TO_SET_USERS_EMAIL: [403, 'Your role may not set the email address of this user'],
  YOU_ARE_NOT_ALLOWED_TO_UPDATE_USERS: [403, 'Your role may not change this user'],
  YOU_ARE_NOT_ALLOWED_TO_LIST_USERS_SESSIONS: [403, 'Your role may not list the sessions of this user'],
  YOU_ARE_NOT_ALLOWED_TO_REVOKE_USERS_SESSIONS: [403, 'Your role may not end the sessions of this user'],
  YOU_ARE_NOT_ALLOWED_TO_LIST_ORGANIZATIONS: [403, 'Your role may not list all organizations'],
  YOU_ARE_NOT_ALLOWED_TO_MANAGE_ORGANIZATIONS: [403, 'Your role may not do this to an organization'],
  YOU_ARE_NOT_ALLOWED_TO_LIST_AUDIT_EVENTS: [403, 'Your role may not list the audit trail'],
  YOU_ARE_NOT_ALLOWED_TO_SET_NON_EXISTENT_VALUE: [400, 'There is no such role'],
  YOU_CANNOT_BAN_YOURSELF: [400, 'You cannot ban yourself'],
  YOU_CANNOT_REMOVE_YOURSELF: [400, 'You cannot remove yourself; use delete-user'],
  YOU_CANNOT_IMPERSONATE_ADMINS: [
    403,
    'The account of an admin is not impersonated and not taken over; a former admin counts as one for 7 days',
  ],
  YOU_ARE_NOT_IMPERSONATING_ANYONE: [400, 'This session impersonates no one'],

  INVALID_CALLBACK_URL: [403, 'The redirect target is neither a path nor a URL of a trusted origin'],
  MISSING_OR_NULL_ORIGIN: [403, 'The request has no Origin or Sec-Fetch-Site header'],
  INVALID_ORIGIN: [
    403,
    'The origin of the request is not trusted: it is neither server.public_url nor in auth.trusted_origins',
  ],
} as const satisfies FailureTable

export const fail = defineFailures(AUTH_FAILURES)

/** Failures of the password policy (password-policy.ts). */
export const PASSWORD_POLICY_FAILURES = [
  'PASSWORD_TOO_SHORT',
  'PASSWORD_TOO_LONG',
  'PASSWORD_COMMON',
  'PASSWORD_COMPROMISED',
  'BREACH_CHECK_UNAVAILABLE',
]
/** Failures of fields of `auth.user.fields` that are sent. */
export const CUSTOM_FIELD_FAILURES = ['FIELD_NOT_ALLOWED', 'MISSING_FIELD', 'FIELD_VALUE_IS_ALREADY_TAKEN']
/** Failures of a captcha (captcha/). */
export const CAPTCHA_FAILURES = ['MISSING_RESPONSE', 'VERIFICATION_FAILED', 'CAPTCHA_UNAVAILABLE']
/** Failures of a password that is asked for in a session, or in place of one. */
export const PASSWORD_CHECK_FAILURES = [
  ...['INVALID_PASSWORD', 'CREDENTIAL_ACCOUNT_NOT_FOUND', 'PASSWORD_CHANGE_REQUIRED'],
]
/** Failures of verifying a second factor. */
export const SECOND_FACTOR_FAILURES = [
  'INVALID_TWO_FACTOR_COOKIE',
  'TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE',
  'ACCOUNT_TEMPORARILY_LOCKED',
  'UNAUTHORIZED',
]
/** Failures of a code of the second factor that is sent to a session. */
export const CODE_FAILURES = [
  'WRONG_CODE',
  'INVALID_BACKUP_CODE',
  'OTP_HAS_EXPIRED',
  'TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE',
  'ACCOUNT_TEMPORARILY_LOCKED',
  'TWO_FACTOR_NOT_ENABLED',
]
/** Failures of a passkey that is shown. */
export const PASSKEY_FAILURES = [
  ...['CHALLENGE_NOT_FOUND', 'UNKNOWN_PASSKEY'],
  ...['AUTHENTICATION_FAILED', 'PASSKEY_RP_ID_INVALID'],
]
/** Failures of a visit to a provider, and of an ID token in its place. */
export const PROVIDER_FAILURES = [
  'PROVIDER_NOT_FOUND',
  'PROVIDER_UNAVAILABLE',
  'INVALID_ID_TOKEN',
  'ID_TOKEN_NOT_SUPPORTED',
  'UNABLE_TO_GET_USER_INFO',
]
/** Failures of a mailed link's token, and of the password that may be asked for with it. */
export const LINK_FAILURES = [
  'INVALID_TOKEN',
  'TOKEN_EXPIRED',
  'PASSWORD_REQUIRED',
  'INVALID_PASSWORD',
  'PASSWORD_CHANGE_REQUIRED',
]
/** Failures of a code that does what a mailed link does. */
export const LINK_CODE_FAILURES = [
  ...['INVALID_EMAIL', 'INVALID_OTP', 'OTP_EXPIRED'],
  ...['TOO_MANY_ATTEMPTS', 'TOO_MANY_WRONG_CODES'],
]
/** Failures of hooks (hooks/). */
export const HOOK_FAILURES = ['REFUSED_BY_HOOK', 'HOOK_UNAVAILABLE']
/** Failures of `admit`. */
export const ADMISSION_FAILURES = [
  ...['BANNED_USER', 'EMAIL_NOT_VERIFIED', 'PASSWORD_SIGN_IN_REQUIRED'],
  ...HOOK_FAILURES,
]

/** All codes of the surface, for the error reference and the error page. Codes of the HTTP edge are shown in capitals here. */
export const AUTH_CODES: FailureTable = {
  ...Object.fromEntries(Object.entries(EDGE_FAILURES).map(([code, says]) => [code.toUpperCase(), says])),
  ...AUTH_FAILURES,
}

/** Codes of redirects that are spelled otherwise, as clients of better-auth know them, or that providers send (RFC 6749, 4.1.2.1). */
export const REDIRECT_CODES: FailureTable = {
  BANNED: AUTH_FAILURES.BANNED_USER,
  SIGNUP_DISABLED: AUTH_FAILURES.SIGN_UP_DISABLED,
  ACCESS_DENIED: [403, 'The sign-in was cancelled at the provider'],
}
