/** Whether an SQL text has this name as a word, in quotes or without. */
export function mentions(text: string, name: string): boolean {
  const written = RegExp.escape(name.replaceAll('"', '""'))
  return new RegExp(`(^|[^\\p{L}\\p{N}_$])${written}($|[^\\p{L}\\p{N}_$])`, 'iu').test(text)
}

export const mayDelete = (text: string): boolean => /\b(delete|truncate)\b/i.test(text)
