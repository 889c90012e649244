const names = new Map<string, string>()

/** The column of a property: `created_at` of `createdAt`. For names of ours, since each is kept. */
export function columnName(property: string): string {
  let name = names.get(property)
  if (name === undefined) {
    name = property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    names.set(property, name)
  }
  return name
}
