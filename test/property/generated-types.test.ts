import { test } from 'node:test'
import fc from 'fast-check'
import { defaultShape } from '#gateway/schema/types/default-shape.ts'
import type { Described } from '#gateway/schema/types/described.ts'
import { kyselyShape } from '#gateway/schema/types/kysely/shape.ts'
import { supabaseShape } from '#gateway/schema/types/supabase/shape.ts'
import { createTypeScriptFolder } from '#test/typescript-folder.ts'
import { structure } from './any-structure.ts'

/** `PROPERTY_RUNS=300` compiles more structures. A failure names the seed for `PROPERTY_SEED`. */
const RUNS = Number(process.env.PROPERTY_RUNS ?? 15)
const SEED = Number(process.env.PROPERTY_SEED ?? Math.trunc(Math.random() * 2 ** 31))

const folder = await createTypeScriptFolder()

test('the types of any structure compile, and name each table and column of it and nothing else', async () => {
  for (const [index, described] of fc.sample(structure, { numRuns: RUNS, seed: SEED }).entries()) {
    await folder.write(`default-${index}.ts`, defaultShape(described.catalogue, described.numbers))
    await folder.write(`supabase-${index}.ts`, supabaseShape(described))
    await folder.write(`kysely-${index}.ts`, kyselyShape(described))
    await folder.write(`check-${index}.ts`, checksOf(described, index))
  }
  await folder.compile(`PROPERTY_SEED=${SEED}`)
})

/** A program that compiles only if the types have exactly these names. */
function checksOf({ catalogue: { tables } }: Described, index: number): string {
  const schemas = new Set(tables.map(({ schema }) => schema))
  const isView = ({ kind }: (typeof tables)[number]) => kind.endsWith('view')
  const lines = [...schemas].flatMap((schema) => {
    const here = tables.filter((table) => table.schema === schema)
    const at = `Database[${JSON.stringify(schema)}]`
    return [
      same(
        `keyof ${at}["Tables"]`,
        here.filter((table) => !isView(table)).map(({ name }) => name),
      ),
      same(
        `keyof ${at}["Views"]`,
        here.filter(isView).map(({ name }) => name),
      ),
      same(
        `keyof Default[${JSON.stringify(schema)}]`,
        here.map(({ name }) => name),
      ),
      ...here.map((table) => {
        const place = `${at}[${JSON.stringify(isView(table) ? 'Views' : 'Tables')}][${JSON.stringify(table.name)}]`
        return same(`keyof ${place}["Row"]`, [...table.columns.keys()])
      }),
    ]
  })
  const keys = tables
    .filter(({ schema, name }) => !`${schema}${name}`.includes('.'))
    .map(({ schema, name }) => (schema === 'public' ? name : `${schema}.${name}`))
  return [
    `import type { Database } from './supabase-${index}.ts'`,
    `import type { Database as Default } from './default-${index}.ts'`,
    `import type { DB } from './kysely-${index}.ts'`,
    'type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false',
    'type All<T extends true[]> = T',
    `export type Named = All<[${[...lines, same('keyof DB', keys)].join(', ')}]>`,
    'export type Unused = [keyof Database, keyof Default]',
  ].join('\n')
}

const same = (type: string, names: readonly string[]): string => `Same<${type}, ${union(names)}>`
const union = (names: readonly string[]): string =>
  names.length === 0 ? 'never' : names.map((name) => JSON.stringify(name)).join(' | ')
