/** Settings under `auth` that add the routes which a service without configuration does not have. */
export const EVERY_FEATURE = {
  magic_link: { enabled: true },
  email_otp: { enabled: true },
  anonymous: { enabled: true },
  one_time_token: { enabled: true },
  multi_session: { enabled: true },
  last_login_method: { enabled: true },
} as const
