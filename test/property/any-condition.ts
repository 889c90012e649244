import fc from 'fast-check'
import { text } from './any-name.ts'
import { moment, ofKind, word } from './any-value.ts'
import {
  type Cast,
  type Comparison,
  type Condition,
  columnAt,
  type Operand,
  type Operator,
  type PatternPart,
  type Row,
  type Search,
  type Table,
  type ValueCast,
  valueAt,
} from './model.ts'
import { dayOf, type Instant, type Kind, type KindName, kinds, type Value } from './values.ts'

export type Source = { readonly table: Table; readonly rows: readonly Row[] }

export function condition(source: Source): fc.Arbitrary<Condition> {
  const { tree } = fc.letrec<{ tree: Condition; leaf: Condition; group: Condition; not: Condition }>(
    (tie) => ({
      tree: fc.oneof({ depthSize: 'small', withCrossShrink: true }, tie('leaf'), tie('group'), tie('not')),
      leaf: comparison(source),
      group: fc.record({
        kind: fc.constantFrom('all', 'any'),
        terms: fc.array(tie('tree'), { minLength: 1, maxLength: 3 }),
      }),
      not: fc.record({ kind: fc.constant('not'), term: tie('tree') }),
    }),
  )
  return tree
}

const comparison = (source: Source): fc.Arbitrary<Comparison> =>
  fc.integer({ min: -1, max: source.table.columns.length - 1 }).chain((column) => {
    const { kind } = columnAt(source.table, column)
    const ways = waysOf(kind)
    return fc.constantFrom(...ways).chain((way) =>
      fc.record({
        kind: fc.constant('compare' as const),
        column: fc.constant(column),
        operator: fc.constantFrom(...way.operators),
        operand: way.operand(source, column),
        ...(way.columnCast && { columnCast: fc.constant(way.columnCast) }),
        ...(way.valueCast && { valueCast: fc.constant(way.valueCast) }),
      }),
    )
  })

/** Operators by the kind of operand they accept. */
type Way = {
  readonly operators: readonly Operator[]
  readonly operand: (source: Source, column: number) => fc.Arbitrary<Operand>
  readonly columnCast?: Cast
  readonly valueCast?: ValueCast
}

const ORDERED: readonly Operator[] = ['eq', 'neq', 'gt', 'gte', 'lt', 'lte']
const SAME: readonly Operator[] = ['eq', 'neq']
const SETS: readonly Operator[] = ['contains', 'containedBy']

function waysOf(kind: KindName): Way[] {
  const one: Way = { operators: kinds[kind].compare ? ORDERED : SAME, operand: aValue(kind) }
  const ways: Way[] = [
    one,
    one,
    { operators: ['is'], operand: () => aWord('null') },
    // The server prints these in a special format.
    ...(kind === 'double' ? [] : [{ operators: SAME, operand: aText(kind), columnCast: 'text' as const }]),
    { ...one, valueCast: 'same' },
  ]
  const isList = kind === 'texts' || kind === 'ints'
  if (isList || kind === 'jsonb')
    ways.push({ operators: isList ? [...SETS, 'overlaps'] : SETS, operand: aValue(kind) })
  if (!isList)
    ways.push(
      { operators: ['in'], operand: aList(kind) },
      { operators: ['in'], operand: aList(kind), valueCast: 'same' },
    )
  ways.push(...special(kind))
  return ways
}

function special(kind: KindName): Way[] {
  const numeric = { operators: ORDERED, operand: aValue('numeric') }
  const days: Way = { operators: ORDERED, operand: aDay }
  switch (kind) {
    case 'text':
    case 'varchar':
      return [
        { operators: ['like', 'ilike'], operand: aPattern },
        { operators: ['like', 'ilike'], operand: aPattern },
      ]
    case 'prose':
      return [
        { operators: ['fts'], operand: aSearch },
        { operators: ['like', 'ilike'], operand: aPattern },
      ]
    case 'boolean':
      return [{ operators: ['is'], operand: () => aWord('null', 'true', 'false', 'unknown') }]
    case 'smallint':
    case 'integer':
      return [
        { ...numeric, columnCast: 'numeric' },
        { ...numeric, valueCast: 'numeric' },
        { operators: ORDERED, operand: aValue('bigint'), valueCast: 'bigint' },
        { operators: ORDERED, operand: aValue('bigint'), columnCast: 'bigint' },
        { operators: ['is'], operand: () => aWord('null', 'true', 'false', 'unknown'), columnCast: 'truth' },
      ].filter((way) => kind === 'integer' || way.columnCast !== 'truth') as Way[]
    case 'bigint':
      return [
        { ...numeric, columnCast: 'numeric' },
        { ...numeric, valueCast: 'numeric' },
      ]
    case 'timestamp':
      return [
        { ...days, columnCast: 'date' },
        { ...days, valueCast: 'date' },
      ]
    case 'timestamptz':
      return [{ ...days, columnCast: 'date' }]
    default:
      return []
  }
}

/** Prefers values of the column, so that some rows match. */
const aValue =
  (of: KindName) =>
  (source: Source, column: number): fc.Arbitrary<Operand> =>
    fc.option(likely(source, column, of), { freq: 8 }).map((value) => ({ kind: 'value', of, value }))

const aList =
  (of: KindName) =>
  (source: Source, column: number): fc.Arbitrary<Operand> =>
    fc
      .array(fc.option(likely(source, column, of), { freq: 6 }), { maxLength: 4 })
      .map((values) => ({ kind: 'list', of, values }))

function likely({ table: of, rows }: Source, column: number, kind: KindName): fc.Arbitrary<Value> {
  const own = columnAt(of, column).kind
  const isSame = own === kind || (kind === 'numeric' && ['smallint', 'integer', 'bigint'].includes(own))
  const existing = isSame ? present({ table: of, rows }, column) : []
  const fresh = ofKind[kind]
  return existing.length === 0
    ? fresh
    : fc.oneof({ weight: 2, arbitrary: fc.constantFrom(...existing) }, { weight: 1, arbitrary: fresh })
}

const present = ({ rows }: Source, column: number): Value[] =>
  rows.map((row) => valueAt(row, column)).filter((value): value is Value => value !== null)

const aText =
  (from: KindName) =>
  (source: Source, column: number): fc.Arbitrary<Operand> => {
    const existing = present(source, column).map((value) => (kinds[from] as Kind).text(value))
    const arbitrary = existing.length === 0 ? text(5) : fc.oneof(fc.constantFrom(...existing), text(5))
    return arbitrary.map((value) => ({ kind: 'value', of: 'text', value }))
  }

const aWord = (...words: ('null' | 'true' | 'false' | 'unknown')[]): fc.Arbitrary<Operand> =>
  fc.constantFrom(...words).map((one) => ({ kind: 'word', word: one }))

const aDay = (source: Source, column: number): fc.Arbitrary<Operand> => {
  const existing = present(source, column).map((value) => dayOf(value as Instant))
  const fresh = moment.map(dayOf)
  return (existing.length === 0 ? fresh : fc.oneof(fc.constantFrom(...existing), fresh)).map((value) => ({
    kind: 'value',
    of: 'date',
    value,
  }))
}

/** A pattern from an existing text, with some characters as wildcards or in another case. */
function aPattern(source: Source, column: number): fc.Arbitrary<Operand> {
  const existing = present(source, column) as string[]
  const from =
    existing.length === 0
      ? text(5)
      : fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...existing) }, { weight: 1, arbitrary: text(5) })
  return from
    .chain((value) => fc.tuple(...[...value].map(partOf)))
    .chain((parts) => fc.tuple(fc.constant(parts), fc.option(fc.nat(parts.length))))
    .map(([parts, many]) => ({
      kind: 'pattern',
      pattern: many === null ? parts : [...parts.slice(0, many), { any: 'many' }],
    }))
}

const partOf = (character: string): fc.Arbitrary<PatternPart> =>
  fc.oneof(
    { weight: 6, arbitrary: fc.constant({ character }) },
    { weight: 1, arbitrary: fc.constant({ any: 'one' as const }) },
    { weight: 1, arbitrary: fc.constant({ any: 'many' as const }) },
    { weight: 2, arbitrary: fc.constant({ character: otherCase(character) }) },
  )

const otherCase = (character: string): string => {
  const other = character === character.toLowerCase() ? character.toUpperCase() : character.toLowerCase()
  return [...other].length === 1 ? other : character
}

const aSearch = (): fc.Arbitrary<Operand> =>
  fc
    .array(
      fc.array(fc.record({ words: fc.array(word, { minLength: 1, maxLength: 2 }), not: fc.boolean() }), {
        minLength: 1,
        maxLength: 2,
      }),
      { minLength: 1, maxLength: 2 },
    )
    .map((search: Search) => ({ kind: 'search', search }))
