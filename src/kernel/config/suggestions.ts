import type { TSchema } from 'typebox'
import { closestName } from '../closest-name.ts'
import { outline } from './outline.ts'

/**
 * The setting that the operator probably meant by the unknown path `setting`: a similar name in the same section (`siblings`), or
 * else the only setting of another section with this name.
 */
export function suggestSetting(
  settings: TSchema,
  setting: string,
  siblings: readonly string[],
): string | undefined {
  const path = setting.split('.')
  const name = path.pop() ?? ''
  const similar = closestName(name, siblings)
  if (similar) return [...path, similar].join('.')
  const namesakes = outline(settings).filter(({ path }) => path.at(-1) === name)
  return namesakes.length === 1 ? namesakes[0]?.path.join('.') : undefined
}
