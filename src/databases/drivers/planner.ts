import type { CatalogueCache } from '#databases/drivers/catalogue-cache.ts'
import type { Catalogue } from '#databases/plan/catalogue.ts'
import type { Plan, PlanOf } from '#databases/plan/plan.ts'
import { redactFailure } from '#databases/plan/redact-failure.ts'
import { requiredRights } from '#databases/plan/required-rights.ts'
import { resolve } from '#databases/plan/resolve.ts'
import type { Rights } from '#databases/plan/rights.ts'
import type { DataRequest } from '#databases/request/request.ts'
import { Failure } from '#kernel/errors.ts'

export type Planner = {
  /** Throws a failure when the caller lacks a right that the request needs. */
  plan<R extends DataRequest>(request: R, rights: Rights): Promise<PlanOf<R>>
  /**
   * Runs the work with the plan. When the structure has changed meanwhile, plans and runs once more, if the new plan needs the same rights.
   * `once`: the work cannot run again, because its transaction has failed.
   */
  attempt<P extends Plan, T>(planned: P, work: (plan: P) => Promise<T>, once?: boolean): Promise<T>
}

/** Plans with a catalogue that may be stale. `hasMoved`: the failure says that a name of the plan no longer exists. */
export function createPlanner(tables: CatalogueCache, hasMoved: (failure: Failure) => boolean): Planner {
  async function plan<R extends DataRequest>(request: R, rights: Rights): Promise<PlanOf<R>> {
    rights.require(requiredRights(request))
    try {
      const planned = await planFrom(request, rights)
      rights.require(requiredRights(planned))
      return planned
    } catch (error) {
      throw error instanceof Failure ? redactFailure(rights, error, request) : error
    }
  }

  async function planFrom<R extends DataRequest>(request: R, rights: Rights): Promise<PlanOf<R>> {
    const catalogue = await tables.current()
    // `resolve` returns the plan of the same kind as the request.
    const resolved = (from: Catalogue) => resolve(from, request, rights) as PlanOf<R>
    try {
      return resolved(catalogue)
    } catch (error) {
      if (!(error instanceof Failure) || !MAY_BE_NEW.has(error.code)) throw error
      const fresh = await tables.fresh()
      if (fresh === catalogue) throw error
      return resolved(fresh)
    }
  }

  async function attempt<P extends Plan, T>(
    planned: P,
    work: (plan: P) => Promise<T>,
    once = false,
  ): Promise<T> {
    try {
      return await attemptTwice(planned, work, once)
    } catch (error) {
      throw error instanceof Failure ? redactFailure(planned.rights, error, planned.request) : error
    }
  }

  async function attemptTwice<P extends Plan, T>(
    planned: P,
    work: (plan: P) => Promise<T>,
    once: boolean,
  ): Promise<T> {
    try {
      return await work(planned)
    } catch (error) {
      if (!(error instanceof Failure) || !hasMoved(error)) throw error
      tables.invalidate()
      if (once) throw error
      // The same request gives the same kind of plan.
      const renewed = (await plan(planned.request, planned.rights)) as unknown as P
      if (JSON.stringify(requiredRights(renewed)) !== JSON.stringify(requiredRights(planned))) throw error
      return work(renewed)
    }
  }

  return { plan, attempt }
}

/** A missing name may have been created since the catalogue was read. */
const MAY_BE_NEW = new Set(['unknown_column', 'table_not_found', 'unknown_relation'])
