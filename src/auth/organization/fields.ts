import { readJson } from '#kernel/http/bodies/body.ts'
import { edge } from '#kernel/http/failures.ts'
import { acceptableImage, acceptableName } from '../user-fields.ts'
import type { OrganizationChange } from './store.ts'

/** Fields of an organization as requests send them. */
export type Fields = {
  readonly name?: string | undefined
  readonly slug?: string | undefined
  readonly logo?: string | null | undefined
  /** An object, or the JSON text of one. */
  readonly metadata?: object | string | null | undefined
  readonly requireTwoFactor?: boolean | undefined
}

/** Characters of the JSON text. */
const METADATA_MAX = 16_384

/** The given fields in the form that is stored. */
export const fieldsFrom = ({ name, slug, logo, metadata, requireTwoFactor }: Fields): OrganizationChange => ({
  ...(name !== undefined && { name: acceptableOrganizationName(name) }),
  ...(slug !== undefined && { slug: slugFrom(slug) }),
  ...(logo !== undefined && { logo: acceptableImage(logo, 'logo') }),
  ...(metadata !== undefined && { metadata: metadataFrom(metadata) }),
  ...(requireTwoFactor !== undefined && { requireTwoFactor }),
})

function acceptableOrganizationName(text: string): string {
  const name = acceptableName(text)
  if (name === '') throw edge('validation_error', { message: 'name must not be empty' })
  return name
}

/** A slug is part of addresses, so it has one spelling: lower case. */
export function slugFrom(text: string): string {
  const slug = text.trim().toLowerCase()
  if (!/^[a-z0-9][a-z0-9._-]{0,62}$/.test(slug))
    throw edge('validation_error', {
      message:
        'slug must have 1 to 63 characters of a-z, 0-9, ".", "_" and "-", and begin with a letter or digit',
    })
  return slug
}

/** Null removes it. */
function metadataFrom(given: object | string | null): string {
  if (typeof given === 'string' && given.length > METADATA_MAX) throw invalidMetadata()
  const value = typeof given === 'string' ? readJson(given, parseExactly).json : (given ?? {})
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalidMetadata()
  const text = JSON.stringify(value)
  if (text.length > METADATA_MAX) throw invalidMetadata()
  return text
}

/** Text may have numbers with more digits than those of JavaScript. Of one with an exponent PostgreSQL may have no room for the digits. */
const parseExactly = (text: string): unknown =>
  JSON.parse(text, (_name, value, { source = '' }: { source?: string } = {}) =>
    typeof value === 'number' && /^-?\d+(\.\d+)?$/.test(source) ? JSON.rawJSON(source) : value,
  )

const invalidMetadata = () =>
  edge('validation_error', {
    message: `metadata must be an object, or the JSON text of one, of at most ${METADATA_MAX} characters`,
  })
