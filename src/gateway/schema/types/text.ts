import { escapeInvisible } from '#kernel/invisible-characters.ts'

/** A name or label of the database in TypeScript. Characters that would make the file look like another one are escaped. */
export const literal = (text: string): string => escapeInvisible(JSON.stringify(text))

const isIdentifier = (name: string): boolean => /^[a-z_$][\w$]*$/i.test(name)

/** The name of a member of a type. */
export const member = (name: string): string => (isIdentifier(name) ? name : literal(name))

export const union = (literals: readonly string[]): string =>
  literals.length === 0 ? 'never' : literals.map(literal).join(' | ')

/** A type with these members, a line each, or `none`. */
export const block = (members: readonly string[], none: string): string =>
  members.length === 0 ? none : `{\n${members.map((text) => `${indented(text)}\n`).join('')}}`

const indented = (text: string): string => text.replace(/^(?=.)/gm, '  ')

export const listOf = (items: readonly string[]): string => `[${items.join(', ')}]`

/** The name of a member of an object: `__proto__` would be its prototype. */
export const property = (name: string): string => (name === '__proto__' ? '["__proto__"]' : member(name))
