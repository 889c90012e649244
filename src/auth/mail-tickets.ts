import { findTicket, type Ticket, type TicketPurpose } from '#identity/tickets.ts'
import { findUser, type User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from './errors.ts'

export type OpenLink<P extends TicketPurpose> = { readonly ticket: Ticket<P>; readonly user: User }

/** What a mailed token would do and for which user. It stays; throws when it would do nothing. */
export async function openLink<P extends TicketPurpose>(
  kernel: Kernel,
  purposes: readonly P[],
  token: string,
): Promise<OpenLink<P>> {
  const ticket = await findTicket(kernel, purposes, token)
  const user = ticket && (await findUser(kernel.db, 'id', ticket.userId))
  if (user === undefined) throw fail('INVALID_TOKEN')
  if (ticket?.expired !== false) throw fail('TOKEN_EXPIRED')
  return { ticket, user }
}
