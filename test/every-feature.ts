/** Settings with every optional feature of the authentication surface. */
export const EVERY_FEATURE = { magic_link: { enabled: true }, email_otp: { enabled: true } } as const
