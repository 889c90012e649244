import type { TSchema } from 'typebox'
import { closestName } from '../closest-name.ts'
import { outline } from './outline.ts'

/** The setting that an unknown name probably stands for: one of the same section with a similar name, or the only one with that name. */
export function suggestSetting(
  settings: TSchema,
  setting: string,
  neighbours: readonly string[],
): string | undefined {
  const path = setting.split('.')
  const name = path.pop() ?? ''
  const near = closestName(name, neighbours)
  if (near) return [...path, near].join('.')
  const elsewhere = outline(settings).filter(({ path }) => path.at(-1) === name)
  return elsewhere.length === 1 ? elsewhere[0]?.path.join('.') : undefined
}
