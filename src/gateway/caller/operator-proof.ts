import type { FastifyRequest } from 'fastify'
import { gatewayRightsOf, isPermitted, operatorRightsOf, rightsOnClient } from '#identity/permissions.ts'
import { lockProvenUser } from '#identity/proof.ts'
import { acceptedProofs, isLatelyProven } from '#identity/recent-proof.ts'
import { lacksSecondFactor } from '#identity/second-factor.ts'
import { findStanding, type Standing } from '#identity/standing.ts'
import { findUser, type User } from '#identity/users.ts'
import type { OperatorRight } from '#kernel/config/sections/auth-admin.ts'
import type { Kernel, OperatorSession } from '#kernel/kernel.ts'
import { coversRight } from '#kernel/rights.ts'
import { fail } from '../errors.ts'
import { lackingInRole, needsProof } from './caller-rights.ts'

/** The demand of an operator's route on a session, by its access rule. */
export type OperatorDemand = { readonly right: OperatorRight; readonly isProven: boolean }

declare module 'fastify' {
  interface FastifyRequest {
    operatorDemand: OperatorDemand | undefined
  }
}

/** The authority of the session that the request operates by, for the transaction that acts (house.md 5.7). */
export function operatorOf(kernel: Kernel, request: FastifyRequest): OperatorSession | undefined {
  const { operating, operatorDemand: demand } = request
  if (operating === undefined) return undefined
  const { live, token } = operating
  const { id: sessionId } = live.session
  const proof = { userId: live.user.id, session: { id: sessionId, token } }
  return {
    async prove(transaction) {
      const now = { ...kernel, ...transaction }
      const user = await lockProvenUser(now, proof)
      if (user === undefined) throw fail('invalid_session')
      const standing = await expectStanding(now, sessionId)
      const session = { ...live.session, shown: [...standing.shown] }
      if (lacksSecondFactor(kernel.config, { ...live, session, user })) throw fail('two_factor_required')
      if (demand === undefined) return
      if (!operatorRightsOf(kernel, user).includes(demand.right))
        throw lackingInRole([`operator: ${demand.right}`])
      if (demand.isProven) expectProof(now, standing)
    },
    async expectRights(transaction, client, rights, { goesOn = false } = {}) {
      const now = { ...kernel, ...transaction }
      const user = await findUser(now.db, 'id', proof.userId)
      const lacks = rights.filter((right) => !isHeld(kernel, user, client, right))
      if (lacks.length > 0) throw lackingInRole(lacks, client)
      if (!goesOn && rights.some(needsProof)) expectProof(now, await expectStanding(now, sessionId))
    },
    async expectToListUsers({ db }) {
      const user = await findUser(db, 'id', proof.userId)
      if (user === undefined || !isPermitted(kernel, user, { user: ['list'] }))
        throw lackingInRole(['user: list'])
    },
    get listsUsers() {
      return isPermitted(kernel, live.user, { user: ['list'] })
    },
  }
}

const isHeld = (kernel: Kernel, user: User | undefined, client: string, right: string): boolean =>
  user !== undefined && coversRight(rightsOnClient(gatewayRightsOf(kernel, user), client), right)

async function expectStanding({ db }: Kernel, sessionId: string): Promise<Standing> {
  const standing = await findStanding(db, sessionId)
  if (standing === undefined) throw fail('invalid_session')
  return standing
}

function expectProof(kernel: Kernel, standing: Standing): void {
  if (!isLatelyProven(kernel, standing))
    throw fail('session_not_fresh', { details: { accepts: acceptedProofs(kernel.config, standing) } })
}
