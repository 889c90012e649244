import { eachMember, eachRow } from '#databases/drivers/json-rows.ts'
import type { Output } from '#databases/plan/plan.ts'

type ColumnOutput = Extract<Output, { kind: 'column' }>

/** Whether the text of a column, which the caller has asked for, tells its value as it would be answered without the cast. */
export const isTextOfValue = ({ cast, column: { base } }: ColumnOutput): boolean =>
  cast === 'text' && Object.hasOwn(VALUES, base)

/**
 * The rows with values of the columns' own types in place of their texts, so that an event has the row whatever its caller wanted to see of it.
 * The console, for example, asks for texts, in which no digit is lost.
 */
export function inOwnTypes(json: string, output: readonly Output[]): string {
  const texts = new Map(
    output.flatMap((member) =>
      member.kind === 'column' && isTextOfValue(member) ? [[member.as, VALUES[member.column.base]]] : [],
    ),
  )
  if (texts.size === 0) return json
  const rows = [...eachRow(json)].map((row) => {
    const members = [...eachMember(row)].map(([name, value]) => {
      const own = value.startsWith('"') ? texts.get(name)?.(JSON.parse(value)) : undefined
      return `${JSON.stringify(name)}:${own ?? value}`
    })
    return `{${members.join(',')}}`
  })
  return `[${rows.join(',')}]`
}

/** The JSON of a value, as the driver writes it (json-values.ts), by its text; undefined where that is the text. */
type ToJson = (text: string) => string | undefined

const matching =
  (form: RegExp): ToJson =>
  (text) =>
    form.test(text) ? text : undefined
/** Not `NaN` and infinities. */
const number = matching(/^-?\d/)
const whole: ToJson = (text) => text
const instant =
  (form: RegExp, end: string): ToJson =>
  (text) => {
    const [, date, time] = form.exec(text) ?? []
    return date === undefined ? undefined : JSON.stringify(`${date}T${time}${end}`)
  }

/** By the base type. The others are answered as texts in any case, or their text is another one: arrays, composites. */
const VALUES: Readonly<Record<string, ToJson>> = {
  int2: number,
  int4: number,
  int8: number,
  oid: number,
  numeric: number,
  float4: number,
  float8: number,
  bool: matching(/^(true|false)$/),
  json: whole,
  jsonb: whole,
  timestamp: instant(/^(\d{4}-\d\d-\d\d) ([\d:.]+)$/, ''),
  timestamptz: instant(/^(\d{4}-\d\d-\d\d) ([\d:.]+)\+00$/, 'Z'),
}
