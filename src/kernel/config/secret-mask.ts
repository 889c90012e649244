import { type TSchema, Type } from 'typebox'
import { redactText } from '../redact.ts'
import { asValues } from './defaults.ts'
import { entryOf, isSetting, type Secret } from './setting.ts'
import { type Config, settings } from './settings.ts'
import { maskedUrl } from './show.ts'

/** Takes the secrets of the configuration out of texts that others have written: messages of servers and libraries. */
export function createSecretMask(config: Config): (text: string) => string {
  const replacements = secretsIn(settings, config)
    .filter(([secret]) => secret.length >= MIN_LENGTH)
    .toSorted(([one], [other]) => other.length - one.length)
    .map(([secret, instead]) => [patternOf(secret), instead] as const)
  return (text) =>
    redactText(
      replacements.reduce((masked, [secret, instead]) => masked.replace(secret, () => instead), text),
    )
}

/** Shorter ones occur by chance. */
const MIN_LENGTH = 6

/** A password that is a word, like postgres, is replaced where it stands alone. */
function patternOf(secret: string): RegExp {
  const exact = RegExp.escape(secret)
  return secret.length >= 16 ? new RegExp(exact, 'g') : new RegExp(`(?<!\\w)${exact}(?!\\w)`, 'g')
}

type Replacement = readonly [secret: string, instead: string]

function secretsIn(schema: TSchema, value: unknown): readonly Replacement[] {
  if (value === undefined || value === null) return []
  if (Type.IsObject(schema))
    return Object.entries(schema.properties).flatMap(([name, inner]) =>
      secretsIn(inner, asValues(value)[name]),
    )
  if (Type.IsRecord(schema))
    return Object.values(asValues(value)).flatMap((inner) => secretsIn(Type.RecordValue(schema), inner))
  const entry = entryOf(schema)
  if (entry !== undefined && Array.isArray(value)) return value.flatMap((inner) => secretsIn(entry, inner))
  const { secret } = isSetting(schema) ? schema : {}
  return secret === undefined ? [] : [value].flat().flatMap((one) => replacementsOf(String(one), secret))
}

const STARS = '***'

function replacementsOf(text: string, secret: Secret): readonly Replacement[] {
  const whole = [text, secret === 'password' ? maskedUrl(text) : STARS] as const
  const url = URL.parse(text)
  if (url === null) return [whole]
  const isHttp = /^https?:$/.test(url.protocol)
  const parts = [
    url.password,
    ...(isHttp && url.password === '' ? [url.username] : []),
    url.search.slice(1),
    // sslmode=require
    ...[...url.searchParams.values()].filter((one) => one.length >= 12),
    url.hash.slice(1),
    ...(isHttp ? url.pathname.split('/').filter((segment) => segment.length >= 16) : []),
  ]
  return [whole, ...[...parts, ...parts.map(decoded)].map((part) => [part, STARS] as const)]
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
