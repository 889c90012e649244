import { InvalidArgumentError } from 'commander'
import { instantFrom } from '#kernel/instants.ts'

/** Parses a number of rows. */
export function count(text: string): number {
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.')
  return Number(text)
}

/** Expects a port. The configuration reads it again, with its other sources. */
export function port(text: string): string {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
    throw new InvalidArgumentError('It must be a port from 0 to 65535.')
  return text
}

/** Parses a number of seconds. A unit or a sign is refused: read as a number, `10m` would be ten seconds. */
export function seconds(text: string): number {
  if (!/^\d{1,9}$/.test(text))
    throw new InvalidArgumentError('It must be a whole number of seconds, like 3600.')
  return Number(text)
}

/** Parses a day or a time. */
export function instant(text: string): Date {
  const parsed = instantFrom(text)
  if (parsed === undefined)
    throw new InvalidArgumentError('It must be a day or a time, like 2026-05-01 or 2026-05-01T10:00:00Z.')
  return parsed
}
