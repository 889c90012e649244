import type { RowsAnswer, RowsFacts } from '#databases/drivers/driver.ts'
import { membersOf, rowTexts } from '#databases/json-rows.ts'
import type { Output } from '#databases/plan.ts'

/** How rows leave, beside what PostgREST does itself. */
export type Shape = { readonly output: readonly Output[]; readonly stripNulls: boolean }

/**
 * The text of at most `most` rows. It is passed on as it came, unless members have to be left out, or a relation of which there can
 * be many came as one: PostgREST gives an object where the key is unique.
 */
export function shaped(text: string, count: number, most: number, shape: Shape): Buffer {
  const isRewritten = shape.stripNulls || shape.output.some((item) => item.kind === 'relation')
  if (!isRewritten && count <= most) return Buffer.from(text)
  const rows = rowTexts(text).slice(0, most)
  return Buffer.from(`[${(isRewritten ? rows.map((row) => rowText(row, shape)) : rows).join(',')}]`)
}

function rowText(row: string, { output, stripNulls }: Shape): string {
  const relations = new Map(output.filter((item) => item.kind === 'relation').map((item) => [item.as, item]))
  const members: string[] = []
  for (const [name, value] of membersOf(row)) {
    const relation = relations.get(name)
    const text = relation === undefined ? value : relationText(value, relation, stripNulls)
    if (!(stripNulls && text === 'null')) members.push(`${JSON.stringify(name)}:${text}`)
  }
  return `{${members.join(',')}}`
}

function relationText(
  value: string,
  { relation, columns }: Extract<Output, { kind: 'relation' }>,
  stripNulls: boolean,
): string {
  const shape = { output: columns, stripNulls }
  if (!relation.many) return value === 'null' ? value : rowText(value, shape)
  const rows = value === 'null' ? [] : value.startsWith('{') ? [value] : rowTexts(value)
  return `[${rows.map((row) => rowText(row, shape)).join(',')}]`
}

export const whole = (json: Buffer, facts: RowsFacts): RowsAnswer => ({ json: [json], facts: () => facts })
