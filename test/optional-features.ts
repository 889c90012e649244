/** Settings under `auth` that add the routes which a service without configuration does not have. */
export const OPTIONAL_FEATURES = {
  one_time_token: { enabled: true },
  multi_session: { enabled: true },
  last_login_method: { enabled: true },
} as const
