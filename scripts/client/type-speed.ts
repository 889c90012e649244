/**
 * States what the types of `@gatehouse/client` cost: 300 queries of all forms on a database of 200 tables, under both versions of TypeScript.
 * Beside them, the same database with a single query: the difference is that of the queries.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const TABLES = 200
const QUERIES = 300
const ROOT = path.resolve(import.meta.dirname, '../..')
const COMPILERS = {
  '7': path.join(ROOT, 'node_modules/typescript/bin/tsc'),
  '5.9': path.join(ROOT, 'packages/client/node_modules/typescript/bin/tsc'),
}

const column = (name: string, type: string) => `${name}: ${type}`
const COLUMNS = [
  column('id', 'number'),
  ...Array.from({ length: 12 }, (_, at) => column(`text_${at}`, at % 2 ? 'string | null' : 'string')),
  column('total', 'number | null'),
  column('parent_id', 'number | null'),
]
const optional = COLUMNS.map((text) => text.replace(':', '?:'))

const key = (table: number) =>
  `{ foreignKeyName: 't${table}_parent_fkey'; columns: ['parent_id']; isOneToOne: false; referencedRelation: 't${(table + 1) % TABLES}'; referencedColumns: ['id'] }`
const table = (at: number) =>
  `t${at}: { Row: { ${COLUMNS.join('; ')} }; Insert: { ${optional.join('; ')} }; Update: { ${optional.join('; ')} }; Relationships: [${key(at)}] }`
const database = `type Database = { public: { Tables: {\n${Array.from({ length: TABLES }, (_, at) => table(at)).join('\n')}\n}; Views: {}; Functions: {} } }`

/** Forms of queries in turn, each on another table. */
const FORMS: readonly ((from: string, above: string, below: string) => string)[] = [
  (from, above) =>
    `db.from('${from}').select({ id: true, text_1: true, ${above}: { id: true, total: true } }).where({ total: { gt: 5 }, text_0: ['a'] }).order({ id: 'desc' }).page(2, 50)`,
  (from, above, below) =>
    `db.from('${from}').select('id, name:text_2, up:${above}(id, text_3), ${below}(id, total)').eq('id', 1).single()`,
  (from) => `db.from('${from}').select().gt('total', 1).in('text_4', ['a']).limit(5)`,
  (from) => `db.from('${from}').insert({ text_0: 'a', total: 1 }).select('id, total').single()`,
  (from) => `db.from('${from}').update({ total: 2 }).where({ id: 1 }).select({ id: true })`,
  (from) => `db.from('${from}').count().where({ text_1: null })`,
]

const name = (at: number) => `t${(at + TABLES) % TABLES}`
const query = (_: unknown, at: number) => {
  const form = FORMS[at % FORMS.length]
  const from = at * 7
  return `export const q${at} = async () => (await ${form?.(name(from), name(from + 1), name(from - 1))}).data`
}

const settings = {
  compilerOptions: {
    target: 'es2022',
    lib: ['es2023', 'dom', 'dom.iterable'],
    module: 'esnext',
    moduleResolution: 'bundler',
    types: [],
    strict: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    noEmit: true,
  },
  files: ['queries.ts'],
}

const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-types-'))
try {
  for (const queries of [1, QUERIES]) {
    writeFileSync(path.join(folder, 'queries.ts'), programOf(queries))
    writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(settings))
    for (const [version, compiler] of Object.entries(COMPILERS))
      console.log(measured(version, compiler, queries))
  }
} finally {
  rmSync(folder, { recursive: true })
}

function programOf(queries: number): string {
  const client = path.join(ROOT, 'packages/client/src/client.ts')
  const lines = Array.from({ length: queries }, query)
  return [
    `import { createClient } from ${JSON.stringify(client)}`,
    database,
    `const db = createClient<Database>({ url: '' })`,
    ...lines,
  ].join('\n')
}

function measured(version: string, compiler: string, queries: number): string {
  const { status, stdout } = spawnSync(
    process.execPath,
    [compiler, '--project', folder, '--extendedDiagnostics'],
    { encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(stdout)
  const fact = (label: string) => new RegExp(`^${label}:\\s+([\\d.]+)`, 'm').exec(stdout)?.[1] ?? '?'
  return `TypeScript ${version}, ${TABLES} tables, ${queries} queries: ${fact('Instantiations')} instantiations, ${fact('Check time')} s to check, ${fact('Total time')} s in all`
}
