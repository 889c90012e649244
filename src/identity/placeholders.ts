/** The name of a user who has not given one, as better-auth calls them. */
export const ANONYMOUS = 'Anonymous'

/**
 * In place of the address of a user who has none (auth/anonymous/). No such domain can exist (RFC 6761, 6.4), and no address that a
 * request names is in it (emails.ts), so the placeholder signs nobody in and gets no mail.
 */
export const placeholderOf = (userId: string): string => `${userId}@${DOMAIN}`

export const isPlaceholder = (email: string): boolean => email.endsWith(`@${DOMAIN}`)

/** The constraint user_anonymous_has_nothing has it too. */
const DOMAIN = 'anonymous.invalid'
