import type { Kernel } from '../kernel.ts'
import { UUID } from '../random.ts'

/** The user by whose session a record is made; null: the admin key or a command. */
export const creatorOf = ({ origin }: Pick<Kernel, 'origin'>): string | null =>
  UUID.test(origin.actorId) ? origin.actorId : null
