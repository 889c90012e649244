import { readJson } from '#kernel/http/bodies/body.ts'
import { instantFrom } from '#kernel/instants.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { UUID, uuidv7 } from '#kernel/random.ts'
import type { UserToAdd } from '../add-users.ts'
import { type CustomFields, fieldsIn, newFields, type RefuseField } from '../custom-fields.ts'
import { emailFrom } from '../emails.ts'
import { type Cost, isTooCostly } from '../hashes/hash.ts'
import { parseHash } from '../hashes/parse-hash.ts'
import { IMAGE_MAX, imageFrom } from '../images.ts'
import { NAME_MAX, NAME_RULE, nameFrom } from '../names.ts'
import { roleFrom, roleNames } from '../permissions.ts'
import { usernameFrom } from '../usernames.ts'

/** A line that describes no user; the message says why. */
export class BadLine extends Error {}

/** Sources of ids and of the time, and the option for hashes that are too costly to check. */
export type Source = Pick<Kernel, 'now' | 'random' | 'config'> & { readonly dropCostlyHashes: boolean }

type Fields = Readonly<Record<string, unknown>>

/** The members of a line, with custom fields beside them. An `id` that is a UUID is used; otherwise the user gets a new one. */
export const FIELDS: ReadonlySet<string> = new Set([
  'id', 'email', 'name', 'emailVerified', 'username', 'displayUsername', 'image', 'passwordHash', 'role', 'createdAt',
  'banned', 'banReason', 'banExpires',
]) // biome-ignore format: one line reads better

/** The members of one line. */
export function fieldsOf(line: string): Fields {
  const { json, failure } = readJson(line)
  // The parser's own message would quote the line with its hash.
  if (failure?.code === 'invalid_json') throw new BadLine('is not valid JSON')
  if (failure !== undefined) throw new BadLine(`cannot be stored: ${failure.hint}`)
  if (typeof json !== 'object' || json === null || Array.isArray(json)) throw new BadLine('is no JSON object')
  // An object, by the checks above.
  return json as Fields
}

/** The user of a line; throws `BadLine`. */
export function userFrom(source: Source, fields: Fields): UserToAdd {
  const { now, random, dropCostlyHashes } = source
  const today = now()
  const id = text(fields, 'id')?.toLowerCase()
  const banned = flag(fields, 'banned')
  return {
    id: id !== undefined && UUID.test(id) ? id : uuidv7(today, random),
    name: name(fields),
    email: email(fields),
    emailVerified: flag(fields, 'emailVerified'),
    image: image(fields),
    ...username(fields),
    role: role(source, fields),
    banned,
    banReason: (banned ? text(fields, 'banReason', 1_024) : undefined) ?? null,
    banExpires: (banned ? date(fields, 'banExpires') : undefined) ?? null,
    createdAt: date(fields, 'createdAt') ?? today,
    accountId: uuidv7(today, random),
    passwordHash: passwordHash(fields, dropCostlyHashes) ?? null,
    fields: customFields(source, fields),
  }
}

function name(fields: Fields): string {
  const given = required(text(fields, 'name'), 'name')
  const stored = [...given].length > NAME_MAX ? undefined : nameFrom(given)
  return stored ?? bad(`name ${quoted(given)} is not ${NAME_RULE}`)
}

function image(fields: Fields): string | null {
  const given = text(fields, 'image', IMAGE_MAX)
  return given === undefined
    ? null
    : (imageFrom(given) ?? bad(`image ${quoted(given)} is no http or https URL`))
}

function email(fields: Fields): string {
  const given = required(text(fields, 'email'), 'email')
  return emailFrom(given) ?? bad(`email ${quoted(given)} is not an address`)
}

function username(fields: Fields): Pick<UserToAdd, 'username' | 'displayUsername'> {
  const display = text(fields, 'displayUsername', 128)
  const handle = text(fields, 'username', 128) ?? display
  if (handle === undefined) return { username: null, displayUsername: null }
  return (
    usernameFrom(handle, display) ??
    bad(
      `username ${quoted(handle)} is not 3 to 30 of a-z, 0-9, "_" and ".", or displayUsername is another name`,
    )
  )
}

function customFields({ config }: Source, fields: Fields): CustomFields | null {
  const refuse: RefuseField = (_problem, message) => bad(message)
  return newFields(config, fieldsIn(config, fields, { by: 'operator', refuse }), refuse)
}

function role(source: Source, fields: Fields): string {
  const given = text(fields, 'role', 1_024) ?? 'user'
  return roleFrom(source, [given]) ?? bad(`role ${quoted(given)} is none of ${roleNames(source).join(', ')}`)
}

/** Messages about a hash do not quote it. */
function passwordHash(fields: Fields, dropCostly: boolean): string | undefined {
  const given = text(fields, 'passwordHash')
  if (given === undefined) return undefined
  const hash = parseHash(given) ?? bad('passwordHash is of no known form')
  if (!isTooCostly(hash.cost)) return given
  return dropCostly ? undefined : bad(tooCostly(hash.cost))
}

const tooCostly = ({ time, memory }: Cost): string =>
  `passwordHash has parameters so high that each sign-in would take about ${Math.round(time / 1_000)} s and ${Math.round(memory / 1_024)} MiB; ` +
  'with --drop-costly-hashes the user is added without it and chooses a new password by a reset mail'

function date(fields: Fields, name: string): Date | undefined {
  const given = text(fields, name)
  if (given === undefined) return undefined
  const read = instantFrom(given)
  // A date of another century is another system's zero.
  const isRecent = read !== undefined && read.getUTCFullYear() >= 1900 && read.getUTCFullYear() < 3000
  return isRecent ? read : bad(`${name} ${quoted(given)} is no date like 2026-01-31T12:00:00Z`)
}

/** Null counts as absent. */
function text(fields: Fields, name: string, max = Number.POSITIVE_INFINITY): string | undefined {
  const value = fields[name] ?? undefined
  if (value === undefined) return undefined
  if (typeof value !== 'string') return bad(`${name} is not a text`)
  return value.length > max ? bad(`${name} is longer than ${max} characters`) : value
}

function flag(fields: Fields, name: string): boolean {
  const value = fields[name] ?? false
  return typeof value === 'boolean' ? value : bad(`${name} is neither true nor false`)
}

const required = <T>(value: T | undefined, name: string): T => value ?? bad(`${name} is missing`)

/** Shortened, but long enough to find it in the file. */
const quoted = (value: string): string => JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value)

function bad(message: string): never {
  throw new BadLine(message)
}
