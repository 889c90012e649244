import { actWithoutProof } from '#identity/act.ts'
import { type Ban, liftBan } from '#identity/bans.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { ban } from './bans.ts'
import { giveRole } from './roles.ts'

/** The verbs of the command line: without a caller, and with the same rules. False when there is no such user. */
export const banByOperator = async (kernel: Kernel, userId: string, given: Ban): Promise<boolean> =>
  (await actWithoutProof(kernel, userId, (kernel, user) => ban(kernel, user, given))) !== undefined

export const unbanByOperator = async (kernel: Kernel, userId: string): Promise<boolean> =>
  (await actWithoutProof(kernel, userId, liftBan)) !== undefined

export const setRoleByOperator = async (kernel: Kernel, userId: string, role: string): Promise<boolean> =>
  (await actWithoutProof(kernel, userId, (kernel, user) => giveRole(kernel, user, role))) !== undefined
