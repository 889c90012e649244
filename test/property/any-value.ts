import fc from 'fast-check'
import { text } from './any-name.ts'
import { decimal, type Instant, type JsonValue, type KindName, startOf, type Value } from './values.ts'

const int = (bits: number) => {
  const most = 2n ** BigInt(bits - 1)
  return fc
    .oneof(
      fc.bigInt({ min: -3n, max: 3n }),
      fc.constantFrom(-most, most - 1n),
      fc.bigInt({ min: -most, max: most - 1n }),
    )
    .map((digits) => decimal(digits))
}

const finite = (digits: number, scale: number) =>
  fc
    .oneof(
      fc.record({ digits: fc.bigInt({ min: -30n, max: 30n }), scale: fc.nat(Math.min(scale, 2)) }),
      fc.record({
        digits: fc.bigInt({ min: -(10n ** BigInt(digits)), max: 10n ** BigInt(digits) }),
        scale: fc.nat(scale),
      }),
    )
    .map((value) => decimal(value.digits, value.scale))

const day = fc.oneof(
  fc.bigInt({ min: -3n, max: 40n }),
  fc.bigInt({ min: -40_000n, max: 60_000n }),
  fc.bigInt({ min: -2_440_000n, max: 2_145_000_000n }),
)
/** 4713 BC to 294276. */
export const moment = fc.oneof(
  fc.bigInt({ min: -3n, max: 3n }),
  day.filter((value) => value < 100_000_000n).map(startOf as (value: bigint) => bigint),
  fc.bigInt({ min: -4_000_000_000_000_000n, max: 4_000_000_000_000_000n }),
  fc.bigInt({ min: -210_000_000_000_000_000n, max: 9_223_000_000_000_000_000n }),
)
const endless = fc.constantFrom<Instant>('infinity', '-infinity')
const often = <T>(arbitrary: fc.Arbitrary<T>, seldom: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 6, arbitrary }, { weight: 1, arbitrary: seldom })

const jsonNumber = finite(25, 12).map(({ digits, scale }) => shortest(digits, scale))

/** Without trailing zeros in the fraction, which JSON numbers do not preserve. */
function shortest(digits: bigint, scale: number) {
  let [least, places] = [digits, scale]
  while (places > 0 && least % 10n === 0n) [least, places] = [least / 10n, places - 1]
  return decimal(least, places)
}

const { json } = fc.letrec<{ json: JsonValue; scalar: JsonValue; list: JsonValue; members: JsonValue }>(
  (tie) => ({
    json: fc.oneof({ depthSize: 'small', withCrossShrink: true }, tie('scalar'), tie('list'), tie('members')),
    scalar: fc.oneof(fc.constant(null), fc.boolean(), jsonNumber, fc.constantFrom('a', 'b'), text(6)),
    list: fc.array(tie('json'), { maxLength: 4 }),
    members: fc
      .dictionary(fc.oneof(fc.constantFrom('a', 'b', 'bb', 'constructor', 'ü', ''), text(4)), tie('json'), {
        maxKeys: 4,
        noNullPrototype: true,
      })
      .map((members) => ({
        members: new Map(Object.entries(members).filter(([key]) => key !== '__proto__')),
      })),
  }),
)

const WORDS = ['fox', 'owl', 'elk', 'yak', 'bat', 'cod'] as const
export const word = fc.constantFrom(...WORDS)
const mark = fc.constantFrom(' ', '  ', ', ', '. ', '\n')

/** A value of one kind, never null. */
export const ofKind: Record<KindName, fc.Arbitrary<Value>> = {
  smallint: int(16),
  integer: int(32),
  bigint: int(64),
  numeric: fc.oneof(
    { weight: 6, arbitrary: finite(60, 40) },
    { weight: 1, arbitrary: fc.constantFrom('NaN', 'Infinity', '-Infinity') },
    {
      weight: 1,
      arbitrary: fc.nat(900).map((zeros) => decimal(10n ** BigInt(zeros) + 1n, Math.min(zeros, 300))),
    },
  ),
  fixed: fc.oneof({ weight: 6, arbitrary: finite(8, 6) }, { weight: 1, arbitrary: fc.constant('NaN') }),
  double: fc.oneof(
    fc.constantFrom(0, -0, 1, -1.5, 0.1, 1e23, 5e-324, 1.7976931348623157e308, 2 ** 53),
    fc.double(),
  ),
  text: text(12),
  varchar: text(12),
  prose: fc
    .array(fc.tuple(word, mark, fc.boolean()), { maxLength: 5 })
    .map((parts) =>
      parts.map(([one, sign, isLarge]) => `${isLarge ? one.toUpperCase() : one}${sign}`).join(''),
    ),
  boolean: fc.boolean(),
  date: often<Instant>(day, endless),
  timestamp: often<Instant>(moment, endless),
  timestamptz: often<Instant>(moment, endless),
  uuid: fc.oneof(
    fc.uuid(),
    fc.constantFrom('00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff'),
  ),
  jsonb: json.filter((value) => value !== null),
  texts: fc.array(fc.option(fc.oneof(fc.constantFrom('a', 'b', 'NULL', ''), text(6))), { maxLength: 4 }),
  ints: fc.array(fc.option(int(32)), { maxLength: 4 }),
}
