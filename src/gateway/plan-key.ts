import type { Column } from '#databases/plan/catalogue.ts'
import type { Output, Plan } from '#databases/plan/plan.ts'
import type { Condition } from '#databases/request/request.ts'

/** What statements with the same key have in common. Names of the catalogue and words of the grammar, never a value. */
export type PlanShape = {
  readonly client: string
  readonly operation: string
  readonly table: string
  /** `status eq and (total gt or total is)`; empty without conditions. */
  readonly conditions: string
  /** `created_at desc, id`. */
  readonly order: string
  /** Tables of relations, joined by commas. */
  readonly relations: string
}

/** No name contains it. */
const SEPARATOR = '\n'

/** Longer texts are cut, so some plans with very many conditions are one. */
const MAX_TEXT = 500

export function planKey(client: string, operation: string, plan: Plan): string {
  const { table } = plan
  const conditions = 'where' in plan && plan.where !== undefined ? shapeOf(plan.where) : ''
  const order = 'sort' in plan && plan.sort.length > 0 ? plan.sort.map(sortText).join(', ') : ''
  const relations = 'output' in plan ? relationsOf(plan.output) : ''
  return [
    client,
    operation,
    `${table.schema}.${table.name}`,
    cut(conditions),
    cut(order),
    cut(relations),
  ].join(SEPARATOR)
}

export function planOfKey(key: string): PlanShape {
  const [client = '', operation = '', table = '', conditions = '', order = '', relations = ''] =
    key.split(SEPARATOR)
  return { client, operation, table, conditions, order, relations }
}

function shapeOf(condition: Condition<Column>): string {
  if (condition.kind === 'compare') return `${condition.column.name} ${condition.operator}`
  if (condition.kind === 'not') return `not (${shapeOf(condition.term)})`
  const joint = condition.kind === 'all' ? ' and ' : ' or '
  return condition.terms
    .map((term) => (term.kind === 'all' || term.kind === 'any' ? `(${shapeOf(term)})` : shapeOf(term)))
    .join(joint)
}

const sortText = ({
  column,
  descending,
}: {
  readonly column: Column
  readonly descending: boolean
}): string => (descending ? `${column.name} desc` : column.name)

function relationsOf(output: readonly Output[]): string {
  let text = ''
  for (const item of output) {
    if (item.kind === 'column') continue
    const { name } = item.relation.table
    const inner = relationsOf(item.columns)
    text += `${text === '' ? '' : ', '}${name}${inner === '' ? '' : ` (${inner})`}`
  }
  return text
}

const cut = (text: string): string => (text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text)
