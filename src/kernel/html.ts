/** Text that is already HTML. */
export type Html = { readonly html: string }

/** Writes HTML. Values are escaped unless they are `Html`; lists are joined, undefined is left out. */
export function html(
  parts: TemplateStringsArray,
  ...values: readonly (string | Html | readonly Html[] | undefined)[]
): Html {
  const written = values.map((value, index) => `${write(value)}${parts[index + 1] ?? ''}`)
  return { html: `${parts[0] ?? ''}${written.join('')}` }
}

function write(value: string | Html | readonly Html[] | undefined): string {
  if (value === undefined) return ''
  if (typeof value === 'string') return escapeHtml(value)
  return 'html' in value ? value.html : value.map((each) => each.html).join('\n')
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character)
