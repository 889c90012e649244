import type { SqlBuilder } from '#databases/drivers/postgres/sql/sql-builder.ts'
import { writeCondition } from '#databases/drivers/postgres/sql/where.ts'
import type { Column } from '#databases/plan/catalogue.ts'
import type { Condition } from '#databases/request/request.ts'

/** Begins the value that is no integer. */
const MARK = 'outside the conditions of the public route'

/**
 * An expression for RETURNING, where a row is as it is stored: after defaults, generated columns and triggers BEFORE. It fails for a row
 * that does not satisfy the condition, also where that is null, and so nothing of the statement is written. With random() the server does
 * not compute the failing branch when it plans.
 */
export function writeRowCheck(sql: SqlBuilder, check: Condition<Column>): void {
  sql.text += 'case when '
  writeCondition(sql, check)
  sql.text += ` then null else pg_catalog.concat('${MARK} ', pg_catalog.random())::pg_catalog.int4 end as "${MARK}"`
}

/** Whether the error of the server is that of the expression: invalid_text_representation, with the mark, in any language. */
export const isRowCheck = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === '22P02' && error.message.includes(MARK)
