import { type RawBuilder, sql } from 'kysely'
import { type User, withoutExpiredBan } from '#identity/users.ts'
import type { Config } from '#kernel/config/config.ts'
import type { CustomField } from '#kernel/field-values.ts'
import { edge } from '#kernel/http/failures.ts'
import { instantFrom } from '#kernel/instants.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { UUID } from '#kernel/random.ts'
import { countUsers, selectUsers } from './store.ts'

/**
 * The columns that a listing is filtered and sorted by: the expression that an index has, and what its values are. Texts are compared by
 * code points, in lower case where the case has no meaning.
 */
const FIELDS = {
  id: { key: sql`id`, type: 'id' },
  email: { key: sql`email collate "C"`, type: 'lower' },
  name: { key: sql`lower(name) collate "C"`, type: 'lower' },
  username: { key: sql`username collate "C"`, type: 'lower' },
  role: { key: sql`role collate "C"`, type: 'text' },
  emailVerified: { key: sql`email_verified`, type: 'flag' },
  twoFactorEnabled: { key: sql`two_factor_enabled`, type: 'flag' },
  isAnonymous: { key: sql`is_anonymous`, type: 'flag' },
  banned: { key: sql`banned`, type: 'flag' },
  banExpires: { key: sql`ban_expires`, type: 'time' },
  createdAt: { key: sql`created_at`, type: 'time' },
  updatedAt: { key: sql`updated_at`, type: 'time' },
} as const satisfies Readonly<Record<string, Field>>

type Field = { readonly key: RawBuilder<unknown>; readonly type: keyof typeof READERS }
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
  if (type === 'boolean') return { key: sql`(${text})::boolean`, type: 'flag' }
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
}

type UserFilter = {
  readonly field: UserField
  readonly sql: RawBuilder<boolean>
  readonly isRange: boolean
}
type Page = {
  readonly users: User[]
  readonly total: number
  readonly limit: number
  readonly offset: number
}

/** One page of the users that fit, and their number. */
export async function listUsers({ db, now: clock, config }: Kernel, query: Query): Promise<Page> {
  const now = clock()
  const { limit = 100, offset = 0, sortDirection = 'asc' } = query
  const filters = [...searchOf(query), ...filterOf(query)].map((asked) => userFilter(config, asked, now))
  const order = { by: fieldNamed(config, query.sortBy ?? usualOrder(filters)).key, direction: sortDirection }
  const where = filters.map(({ sql }) => sql)
  const [users, total] = await Promise.all([
    selectUsers(db, where, order, { limit, offset }),
    countUsers(db, where),
  ])
  return { users: users.map((user) => withoutExpiredBan(user, now)), total, limit, offset }
}

/** A range is read in the order of its index, and so only as far as the page goes. */
const usualOrder = (filters: readonly UserFilter[]): UserField =>
  filters.find(({ field, isRange }) => isRange && field in FIELDS)?.field ?? 'id'

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
  const { key, type } = fieldNamed(config, field)
  const isList = operator === 'in' || operator === 'not_in'
  const texts = isList && typeof given === 'string' ? given.split(',') : [given].flat()
  const values = texts.map((text) => READERS[type](text.trim()) ?? refuse(field))
  if (!isList && values.length !== 1) return refuse(field)
  const isOfText = TEXT_OPERATORS.some((one) => one === operator)
  if (isOfText && type !== 'text' && type !== 'lower') return refuse(field, operator)
  if (type === 'flag' && !['eq', 'ne', 'in', 'not_in'].includes(operator)) return refuse(field, operator)
  const [value = ''] = values
  const compared = isList ? values : value
  return { field, sql: compare({ field, key }, operator, compared, now), isRange: RANGES.includes(operator) }
}

/** An expired ban is none. Each filter names its column by itself too, so that the index of the column fits. */
function compare(
  { field, key }: { readonly field: UserField; readonly key: RawBuilder<unknown> },
  operator: FilterOperator,
  value: Value | readonly Value[],
  now: Date,
): RawBuilder<boolean> {
  const with_ = COMPARISONS[operator]
  if (field === 'banned') return with_(sql`(banned and (ban_expires is null or ban_expires > ${now}))`, value)
  if (field !== 'banExpires') return with_(key, value)
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

type Compare = (key: RawBuilder<unknown>, value: Value | readonly Value[]) => RawBuilder<boolean>

const pattern = (value: Value | readonly Value[]): string => String(value).replace(/[\\%_]/g, '\\$&')

const COMPARISONS: { readonly [Name in FilterOperator]: Compare } = {
  // As a literal, so that a partial index fits.
  eq: (key, value) => (typeof value === 'boolean' ? sql`${key} = ${sql.lit(value)}` : sql`${key} = ${value}`),
  ne: (key, value) =>
    typeof value === 'boolean' ? sql`${key} = ${sql.lit(!value)}` : sql`${key} is distinct from ${value}`,
  lt: (key, value) => sql`${key} < ${value}`,
  lte: (key, value) => sql`${key} <= ${value}`,
  gt: (key, value) => sql`${key} > ${value}`,
  gte: (key, value) => sql`${key} >= ${value}`,
  in: (key, value) => sql`${key} = any (${value})`,
  not_in: (key, value) => sql`not coalesce(${key} = any (${value}), false)`,
  contains: (key, value) => sql`${key} like ${`%${pattern(value)}%`}`,
  ends_with: (key, value) => sql`${key} like ${`%${pattern(value)}`}`,
  // The bounds of the prefix, by which an index is read.
  starts_with: (key, value) =>
    sql`${key} like ${`${pattern(value)}%`} and ${key} >= ${value} and ${key} < ${`${value}\u{10ffff}`}`,
}

function refuse(field: UserField, operator?: FilterOperator): never {
  const message =
    operator === undefined
      ? `filterValue is not a value of ${field}`
      : `filterOperator ${operator} does not apply to ${field}`
  throw edge('validation_error', { message })
}
