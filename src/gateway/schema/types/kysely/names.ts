import { TAKEN_NAMES } from './declarations.ts'

/** Gives each table and enum a name of TypeScript that no other one has. Those of `public` stand without their schema. */
export function createTypeNames(): (of: { readonly schema: string; readonly name: string }) => string {
  const taken = new Set(TAKEN_NAMES)
  return ({ schema, name }) => {
    const wanted = pascalCase(schema === 'public' ? name : `${schema} ${name}`)
    let free = wanted
    for (let number = 2; taken.has(free); number++) free = `${wanted}${number}`
    taken.add(free)
    return free
  }
}

/** Letters and digits of ASCII: which others a compiler takes depends on its version. */
function pascalCase(text: string): string {
  const words = text.match(/[a-z0-9]+/gi) ?? []
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
  return /^[A-Z]/.test(name) ? name : `_${name}`
}
