import type { Column } from '#databases/plan/catalogue.ts'
import type { Output, Plan } from '#databases/plan/plan.ts'
import type { Condition, Sort } from '#databases/request/request.ts'

/** The facts that statements of one key share: names of the catalogue and words of the grammar, never a value. */
type PlanShape = {
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

/** No name in a database contains it. */
const SEPARATOR = '\0'

/** Longer texts are cut, so some plans with very many conditions are one. */
const MAX_TEXT = 500

/** Written for speed, with loops: each statement of the gateway pays for it. */
export function planKey(client: string, operation: string, plan: Plan): string {
  const { schema, name } = plan.table
  const conditions = 'where' in plan && plan.where !== undefined ? cut(shapeOf(plan.where)) : ''
  const order = 'sort' in plan && plan.sort.length > 0 ? cut(orderOf(plan.sort)) : ''
  const relations = 'output' in plan ? cut(relationsOf(plan.output)) : ''
  const facts = `${client}${SEPARATOR}${operation}${SEPARATOR}${schema}.${name}`
  return `${facts}${SEPARATOR}${conditions}${SEPARATOR}${order}${SEPARATOR}${relations}`
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
  let text = ''
  for (const term of condition.terms) {
    const shape = term.kind === 'all' || term.kind === 'any' ? `(${shapeOf(term)})` : shapeOf(term)
    text = text === '' ? shape : text + joint + shape
  }
  return text
}

function orderOf(sort: readonly Sort<Column>[]): string {
  let text = ''
  for (const { column, descending } of sort)
    text += `${text === '' ? '' : ', '}${column.name}${descending ? ' desc' : ''}`
  return text
}

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
