import { type RawBuilder, sql } from 'kysely'
import { type User, withoutExpiredBan } from '#identity/users.ts'
import type { Config } from '#kernel/config/config.ts'
import { type CountMode, type Total, totalBeside } from '#kernel/db/total.ts'
import type { CustomField } from '#kernel/field-values.ts'
import { edge } from '#kernel/http/failures.ts'
import { instantFrom } from '#kernel/instants.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { UUID } from '#kernel/random.ts'
import { countUsers, type Order, selectUsers } from './store.ts'

/**
 * The columns that a listing is filtered and sorted by: the expression that an index has, what its values are, and what orders equal ones in
 * the index that has all users. Texts are compared by code points, in lower case where the case has no meaning.
 */
const FIELDS = {
  id: { key: sql`id`, type: 'id', ties: 'id' },
  email: { key: sql`email collate "C"`, type: 'lower', ties: 'id' },
  name: { key: sql`lower(name) collate "C"`, type: 'text', ties: 'id', bind: lowered },
  username: { key: sql`username collate "C"`, type: 'lower', ties: 'id' },
  role: { key: sql`role collate "C"`, type: 'text', ties: 'createdAt' },
  emailVerified: { key: sql`email_verified`, type: 'flag', ties: 'createdAt' },
  twoFactorEnabled: { key: sql`two_factor_enabled`, type: 'flag' },
  isAnonymous: { key: sql`is_anonymous`, type: 'flag' },
  banned: { key: sql`banned`, type: 'flag' },
  banExpires: { key: sql`ban_expires`, type: 'time' },
  createdAt: { key: sql`created_at`, type: 'time', ties: 'id' },
  updatedAt: { key: sql`updated_at`, type: 'time', ties: 'id' },
} as const satisfies Readonly<Record<string, Field>>

/** As the server writes it in the index: for letters like Σ and İ it has another lower case than JavaScript. */
function lowered(value: Value | readonly Value[]): RawBuilder<unknown> {
  return Array.isArray(value)
    ? sql`array(select lower(one) from unnest(${value}::text[]) as one)`
    : sql`lower(${value}::text)`
}

/** Their filters have indexes in the order of creation (0127_user_listing_by_creation.sql). */
const BY_CREATION: readonly UserField[] = ['role', 'emailVerified', 'banned', 'twoFactorEnabled']

/** More users than this are not sorted without an index. */
const SORTED = 100_000

/** So many users are read and sorted at once. In the order of an index, a planner that expects more would read past most of the others. */
const FEW = 1_000

type Field = {
  readonly key: RawBuilder<unknown>
  readonly type: keyof typeof READERS
  /** Undefined: there is no such index. */
  readonly ties?: 'id' | 'createdAt'
  /** A user may have no value, which is none of those that a filter names. */
  readonly isOptional?: true
  /** How the key is compared with a value; by default as it is. */
  readonly bind?: Bind
}
type Bind = (value: Value | readonly Value[]) => RawBuilder<unknown>
/** That of `FIELDS`, or a custom field. */
type UserField = string

/** The names of all fields that a listing can be filtered and sorted by. */
export const userFields = (config: Config): readonly string[] => [
  ...Object.keys(FIELDS),
  ...Object.entries(config.auth.user.fields).flatMap(([name, { type }]) =>
    type.endsWith('[]') ? [] : [name],
  ),
]

/** The schema has refused any other name. A custom field has no index. */
function fieldNamed({ auth }: Config, name: UserField): Field {
  const builtIn = Object.entries(FIELDS).find(([one]) => one === name)?.[1]
  return builtIn ?? customField(name, auth.user.fields[name]?.type ?? 'string')
}

/** Values of another type, from before a change of the setting, count as none. */
function customField(name: string, type: CustomField['type']): Field {
  const stored = type === 'number' || type === 'boolean' ? type : 'string'
  const text = sql`case when jsonb_typeof(fields -> ${name}) = ${stored} then fields ->> ${name} end`
  if (type === 'number') return { key: sql`(${text})::numeric`, type: 'number' }
  if (type === 'boolean') return { key: sql`(${text})::boolean`, type: 'flag', isOptional: true }
  // ISO 8601 in UTC, which is in the order of time.
  return { key: sql`(${text}) collate "C"`, type: type === 'date' ? 'instant' : 'text' }
}

export const SEARCHED = ['email', 'name'] as const

export const TEXT_OPERATORS = ['contains', 'starts_with', 'ends_with'] as const
export const FILTER_OPERATORS = [
  'eq', 'ne', 'lt', 'lte', 'gt', 'gte', 'in', 'not_in', 'contains', 'starts_with', 'ends_with',
] as const // biome-ignore format: one line reads better
type FilterOperator = (typeof FILTER_OPERATORS)[number]

type Query = {
  readonly searchValue?: string
  readonly searchField?: (typeof SEARCHED)[number]
  readonly searchOperator?: (typeof TEXT_OPERATORS)[number]
  readonly filterField?: UserField
  readonly filterOperator?: FilterOperator
  readonly filterValue?: string | readonly string[]
  readonly sortBy?: UserField
  readonly sortDirection?: 'asc' | 'desc'
  readonly limit?: number
  readonly offset?: number
  readonly count?: CountMode
}

type UserFilter = {
  readonly field: UserField
  readonly sql: RawBuilder<boolean>
  readonly isRange: boolean
}
type Page = Total & {
  readonly users: User[]
  readonly limit: number
  readonly offset: number
}

/** One page of the users that fit, and their number. */
export async function listUsers({ db, now: clock, config }: Kernel, query: Query): Promise<Page> {
  const now = clock()
  const { limit = 100, offset = 0 } = query
  const filters = [...searchOf(query), ...filterOf(query)].map((asked) => userFilter(config, asked, now))
  const where = filters.map(({ sql }) => sql)
  const counted = await countUsers(db, where, query.count)
  const order = orderOf(config, query, filters, counted)
  const page = { limit: limit + 1, offset, isOfFew: counted.total <= FEW }
  const found = await selectUsers(db, where, order, page)
  const users = found.slice(0, limit).map((user) => withoutExpiredBan(user, now))
  return { users, ...totalBeside(counted, { limit, offset }, found.length), limit, offset }
}

function orderOf(
  config: Config,
  { sortBy, sortDirection: direction = 'asc' }: Query,
  filters: readonly UserFilter[],
  { total }: Total,
): Order {
  const name = sortBy ?? usualOrder(filters)
  const { key, ties } = fieldNamed(config, name)
  if (sortBy !== undefined && ties === undefined && total > SORTED) {
    const message = `By ${name} at most ${SORTED} users are sorted: filter them, or sort by another field`
    throw edge('validation_error', { message })
  }
  return { by: ties === 'createdAt' ? [key, FIELDS.createdAt.key] : [key], direction }
}

/** The order of the index that the filters have, in which only as much is read as the page has. */
function usualOrder(filters: readonly UserFilter[]): UserField {
  const range = filters.find(({ field, isRange }) => isRange && field in FIELDS)
  if (range !== undefined) return range.field
  return filters.some(({ field }) => BY_CREATION.includes(field)) ? 'createdAt' : 'id'
}

type FilterQuery = {
  readonly field: UserField
  readonly operator: FilterOperator
  readonly given: string | readonly string[]
}

const searchOf = ({
  searchValue: given = '',
  searchField: field = 'email',
  searchOperator: operator = 'contains',
}: Query): FilterQuery[] => (given === '' ? [] : [{ field, operator, given }])

const filterOf = ({
  filterValue: given,
  filterField: field = 'email',
  filterOperator: operator = 'eq',
}: Query): FilterQuery[] => (given === undefined ? [] : [{ field, operator, given }])

function userFilter(config: Config, { field, operator, given }: FilterQuery, now: Date): UserFilter {
  const { key, type, isOptional, bind } = fieldNamed(config, field)
  const isList = operator === 'in' || operator === 'not_in'
  const texts = isList && typeof given === 'string' ? given.split(',') : [given].flat()
  const values = texts.map((text) => READERS[type](text.trim()) ?? refuse(field))
  if (!isList && values.length !== 1) return refuse(field)
  const isOfText = TEXT_OPERATORS.some((one) => one === operator)
  if (isOfText && type !== 'text' && type !== 'lower') return refuse(field, operator)
  if (type === 'flag' && !['eq', 'ne', 'in', 'not_in'].includes(operator)) return refuse(field, operator)
  const [value = ''] = values
  const [how, compared] =
    operator === 'ne' && isOptional ? (['not_in', values] as const) : [operator, isList ? values : value]
  return {
    field,
    sql: compare({ field, key, bind }, how, compared, now),
    isRange: RANGES.includes(operator),
  }
}

/** An expired ban is none. Each filter names its column by itself too, so that the index of the column fits. */
function compare(
  { field, key, bind }: Pick<Field, 'key'> & { readonly field: UserField; readonly bind: Bind | undefined },
  operator: FilterOperator,
  value: Value | readonly Value[],
  now: Date,
): RawBuilder<boolean> {
  const with_ = COMPARISONS[operator]
  if (field === 'banned') return with_(sql`(banned and (ban_expires is null or ban_expires > ${now}))`, value)
  if (field !== 'banExpires') return with_(key, value, bind)
  const isNegated = operator === 'ne' || operator === 'not_in'
  if (isNegated) return with_(sql`case when ban_expires > ${now} then ban_expires end`, value)
  return sql`ban_expires > ${now} and ${with_(key, value)}`
}

type Value = string | number | boolean | Date

/** The value that a text means; undefined when it means none. */
const READERS = {
  id: (text: string): Value | undefined => (UUID.test(text) ? text : undefined),
  lower: (text: string): Value | undefined => text.toLowerCase(),
  text: (text: string): Value | undefined => text,
  flag: (text: string): Value | undefined => (text === 'true' ? true : text === 'false' ? false : undefined),
  time: (text: string): Value | undefined => instantFrom(text),
  instant: (text: string): Value | undefined => instantFrom(text)?.toISOString(),
  number: (text: string): Value | undefined =>
    /^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : undefined,
}

const RANGES: readonly FilterOperator[] = ['lt', 'lte', 'gt', 'gte', 'starts_with']

type Compare = (key: RawBuilder<unknown>, value: Value | readonly Value[], bind?: Bind) => RawBuilder<boolean>

const asItIs: Bind = (value) => sql`${value}`

const pattern = (value: Value | readonly Value[]): string => String(value).replace(/[\\%_]/g, '\\$&')

const COMPARISONS: { readonly [Name in FilterOperator]: Compare } = {
  // As a literal, so that a partial index fits.
  eq: (key, value, bind = asItIs) =>
    typeof value === 'boolean' ? sql`${key} = ${sql.lit(value)}` : sql`${key} = ${bind(value)}`,
  ne: (key, value, bind = asItIs) =>
    typeof value === 'boolean'
      ? sql`${key} = ${sql.lit(!value)}`
      : sql`${key} is distinct from ${bind(value)}`,
  lt: (key, value, bind = asItIs) => sql`${key} < ${bind(value)}`,
  lte: (key, value, bind = asItIs) => sql`${key} <= ${bind(value)}`,
  gt: (key, value, bind = asItIs) => sql`${key} > ${bind(value)}`,
  gte: (key, value, bind = asItIs) => sql`${key} >= ${bind(value)}`,
  in: (key, value, bind = asItIs) => sql`${key} = any (${bind(value)})`,
  not_in: (key, value, bind = asItIs) => sql`not coalesce(${key} = any (${bind(value)}), false)`,
  contains: (key, value, bind = asItIs) => sql`${key} like ${bind(`%${pattern(value)}%`)}`,
  ends_with: (key, value, bind = asItIs) => sql`${key} like ${bind(`%${pattern(value)}`)}`,
  // The bounds of the prefix, by which an index is read.
  starts_with: (key, value, bind = asItIs) =>
    sql`${key} like ${bind(`${pattern(value)}%`)} and ${key} >= ${bind(value)} and ${key} < ${bind(`${value}\u{10ffff}`)}`,
}

function refuse(field: UserField, operator?: FilterOperator): never {
  const message =
    operator === undefined
      ? `filterValue is not a value of ${field}`
      : `filterOperator ${operator} does not apply to ${field}`
  throw edge('validation_error', { message })
}
