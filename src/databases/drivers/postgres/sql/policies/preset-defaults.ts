import type { RunQuery } from '#databases/drivers/management.ts'
import { soleExpression } from '#databases/drivers/postgres/sql/parse-tree.ts'
import { parse } from '#databases/drivers/postgres/sql/parser.ts'
import type { ConcretePolicy } from '#databases/drivers/postgres/sql/policies/concrete.ts'
import { type MarkedDefault, markOf } from '#databases/drivers/postgres/sql/policies/mark.ts'
import type { SecurityState, StoredPolicy } from '#databases/drivers/postgres/sql/policies/state.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'
import { fail } from '#databases/failures.ts'

/** The default of a column that a preset has set, where it still stands. */
type PresetDefault = MarkedDefault & { readonly column: string }

function presetDefaults({ policies, defaults }: SecurityState): readonly PresetDefault[] {
  const found = policies.flatMap((stored) => {
    const given = markOf(stored)?.default
    if (given === undefined) return []
    const names = columnsOf(stored)
    const present = defaults.find(({ column, text }) => names.includes(column) && text === given.own)
    return present === undefined ? [] : [{ ...given, column: present.column }]
  })
  return found.filter(({ column }, index) => found.findIndex((other) => other.column === column) === index)
}

/** The column of a preset, also under a new name. */
function columnsOf(stored: StoredPolicy): readonly string[] {
  const policy = markOf(stored)?.policy
  if (policy === undefined || !('column' in policy)) return []
  return [policy.column, ...stored.columns.map(({ name }) => name)]
}

/** Defaults that presets have replaced. They come back when the preset goes. */
export const replacedDefaults = (state: SecurityState) =>
  presetDefaults(state).flatMap(({ column, former }) =>
    former === null ? [] : [{ column, default_expression: former }],
  )

type Change = {
  /** The table as SQL. */
  readonly name: string
  readonly policies: readonly ConcretePolicy[]
  readonly state: SecurityState
}

/** Columns of presets get the claim as their default; those of former presets get back the default that they had. */
export const defaultStatements = (change: Change): readonly string[] => [
  ...lost(change).map((given) => restoring(change, given)),
  ...change.policies.flatMap(({ owned }) =>
    owned === undefined ? [] : [alteration(change, owned.column, `set default ${owned.fallback}`)],
  ),
]

const lost = ({ policies, state }: Change): readonly PresetDefault[] =>
  presetDefaults(state).filter(({ column }) => !policies.some(({ owned }) => owned?.column === column))

const restoring = (change: Change, { column, former }: PresetDefault): string =>
  alteration(change, column, former === null ? 'drop default' : `set default ${former}`)

const alteration = ({ name }: Change, column: string, text: string): string =>
  `alter table ${name} alter column ${quoteName(column)} ${text}`

/** The default of its column, for the comment of a preset's policy. */
export function markedDefault(
  { owned }: ConcretePolicy,
  { before, made }: { readonly before: SecurityState; readonly made: SecurityState },
): MarkedDefault | undefined {
  if (owned === undefined) return undefined
  const { column } = owned
  const textIn = ({ defaults }: SecurityState) => defaults.find((other) => other.column === column)?.text
  const replaced = presetDefaults(before).find((other) => other.column === column)
  const own = textIn(made)
  return own === undefined
    ? undefined
    : { own, former: (replaced ? replaced.former : textIn(before)) ?? null }
}

/** The owner of the table can change a comment, so a default from one is judged like a text of a request. */
export async function requireExpressions(change: Change): Promise<void> {
  for (const { column, former } of lost(change)) if (former !== null) await requireExpression(column, former)
}

async function requireExpression(column: string, text: string): Promise<void> {
  const result = await parse(`select ${text}`).catch(() => undefined)
  if (result === undefined || soleExpression(result) === undefined)
    throw cannotComeBack(column, text, 'it is not one expression')
}

/** A function of a kept default may have been dropped: nothing depends on the default while the preset stands. */
export async function requireRestorable(query: RunQuery, change: Change): Promise<void> {
  for (const given of lost(change).filter(({ former }) => former !== null)) {
    await query('savepoint restoring', [])
    try {
      await query(restoring(change, given), [])
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && /^(22|42)/.test(String(error.code)))) throw error
      throw cannotComeBack(given.column, given.former ?? '', error.message)
    }
    await query('rollback to savepoint restoring', [])
  }
}

const cannotComeBack = (column: string, text: string, reason: string) =>
  fail('invalid_policy', {
    hint: `The default ${text.slice(0, 200)} of column ${column}, which a preset has replaced, cannot come back (${reason.slice(0, 200)}). Give the column another one with set_default or drop_default first.`,
    details: { column },
  })
