import type { RowsResult } from '#databases/drivers/driver.ts'
import type { Body } from '#databases/request/fields.ts'
import { actAsOperator } from '#identity/act.ts'
import { tell } from '#identity/tell.ts'
import { Failure } from '#kernel/errors.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { nameOfRight } from '#kernel/rights.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { requireRight } from '../caller/caller-rights.ts'
import { anonymous } from '../caller/caller-role.ts'
import { expectRights } from '../caller/expected-rights.ts'
import { actingAs, type Prepared, prepare, prepareAgain } from '../prepare.ts'
import { rowLevelSecurityOff } from '../row-level-security-off.ts'
import { type AskedSubject, findSubject, type Subject } from './subject.ts'

/** Everyone who sees as another may already see every row of the table. */
export const NEEDED = 'gateway.bypass_row_level_security'

type SeenRows = {
  readonly subject: Subject
  /** Undefined with a refusal. */
  readonly rows: RowsResult | undefined
  /** The failure that the subject gets in place of rows. */
  readonly refusal: Failure | undefined
}

/**
 * Reads rows as a user or a visitor would see them now, in a read-only transaction. The caller needs the right to read the tables, and the one
 * that shows what policies hide (`NEEDED`, which the route requires), so it gets no row that it may not read. The trail has the act before any
 * row is read.
 */
export async function seeRowsAs(
  kernel: Kernel,
  caller: GatewayCaller,
  { body, asked }: { readonly body: Body; readonly asked: AskedSubject },
): Promise<SeenRows> {
  const security = caller.client.rowLevelSecurity
  if (security === undefined) throw rowLevelSecurityOff(caller.client)
  const viewer = { ...caller, needed: [] }
  const read = await prepare(kernel, actingAs(viewer, anonymous(security).persona), body, 'fetch')
  await requireSqlForViews(read)
  const subject = await actAsOperator(kernel, async (kernel) => {
    await expectRights(kernel, caller.client.name, [NEEDED, ...viewer.needed.map(nameOfRight)])
    const subject = await findSubject(kernel, asked, security)
    await tell(kernel, 'rows.seen_as', actOf(read, asked))
    return subject
  })
  if (subject.refusal !== undefined) return { subject, rows: undefined, refusal: subject.refusal }
  const again = await prepareAgain({ ...read, caller: actingAs(viewer, subject.persona) }, read.plan.request)
  try {
    return { subject, rows: await again.run(), refusal: undefined }
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'permission_denied') throw error
    return { subject, rows: undefined, refusal: error }
  }
}

/** A view may read any table, by the claims of the user too, as SQL may. */
async function requireSqlForViews({ caller }: Prepared<'fetch'>): Promise<void> {
  const catalogue = await caller.backend.catalogue()
  const isTable = ({ schema, table }: { readonly schema: string; readonly table: string }): boolean =>
    ['table', 'partitioned table'].includes(catalogue.find(schema, table)?.kind ?? '')
  if (!caller.needed.every(isTable)) requireRight(caller, ['gateway.query', 'gateway.query.read'])
}

function actOf({ caller, plan }: Prepared<'fetch'>, asked: AskedSubject) {
  const table = `${plan.table.schema}.${plan.table.name}`
  const act = { clientName: caller.client.name }
  if (!('userId' in asked)) return { ...act, details: { table, role: asked.role } }
  const { userId: targetId, organizationId } = asked
  return { ...act, targetId, ...(organizationId !== undefined && { organizationId }), details: { table } }
}
