import { isPlaceholder } from '#identity/placeholders.ts'
import type { Kernel } from '#kernel/kernel.ts'

/** Where the request comes from, as hooks are told it. */
export const sourceOf = ({ origin: { ipAddress, userAgent } }: Kernel) => ({
  ip_address: ipAddress ?? null,
  user_agent: userAgent?.slice(0, 512) ?? null,
})

/** The address, as hooks are told it: null for a user who has none, known or not. */
export const toldEmail = (email: string): string | null => (isPlaceholder(email) ? null : email)
