import { call } from '../../api.js'

/**
 * @typedef {{ schema: string, name: string, kind: string }} Table
 * @typedef {{ name: string, type: string }} Column
 * @typedef {{ tables: () => Promise<readonly Table[]>, columnsOf: (table: Table) => Promise<readonly Column[]> }} Names
 */

/**
 * Names in the database of a client, read when they are first needed. Who may not read the structure writes without offers.
 * @param {string} client
 * @returns {Names}
 */
export function createNames(client) {
  /** @type {Promise<readonly Table[]> | undefined} */
  let tables
  /** @type {Map<string, Promise<readonly Column[]>>} */
  const columns = new Map()
  return {
    tables: () =>
      (tables ??= call('/schema/tables', { client }).then(
        (answer) => answer.tables.map(tableOf),
        () => [],
      )),
    columnsOf({ schema, name }) {
      const key = JSON.stringify([schema, name])
      const query = { table_schema: schema, table_name: name }
      const known =
        columns.get(key) ??
        call('/schema/columns', { client, query }).then(
          (answer) => answer.columns.map(columnOf),
          () => [],
        )
      columns.set(key, known)
      return known
    },
  }
}

/** @param {{ table_schema: string, table_name: string, table_type: string }} listed @returns {Table} */
const tableOf = ({ table_schema: schema, table_name: name, table_type: kind }) => ({ schema, name, kind })
/** @param {{ column_name: string, data_type: string }} listed @returns {Column} */
const columnOf = ({ column_name: name, data_type: type }) => ({ name, type })

/**
 * Offers tables, schemas, and the columns of the tables that the text names: after `alias.` those of its table.
 * @param {Names} names
 * @returns {import('@codemirror/autocomplete').CompletionSource}
 */
export const createOffers = (names) => async (context) => {
  const typed = context.matchBefore(/(?:(?:"[^"]*"|[\p{L}\p{N}_$]+)\.)?"?[\p{L}\p{N}_$]*/u)
  if (typed === null || (typed.text === '' && !context.explicit)) return null
  const dot = typed.text.lastIndexOf('.')
  const text = context.state.doc.toString()
  const tables = await names.tables()
  const used = usedIn(text, tables)
  const from = typed.from + dot + 1
  const validFor = /^"?[\p{L}\p{N}_$]*$/u
  if (dot < 0) {
    const columns = await columnsOfAll(names, used)
    return {
      from,
      validFor,
      options: [...unique(columns), ...tables.map(offerOfTable), ...schemasOf(tables)],
    }
  }
  const before = bare(typed.text.slice(0, dot))
  const inSchema = tables.filter(({ schema }) => schema === before)
  const meant = used.filter(({ alias, table }) => alias === before || table.name === before)
  const columns = await columnsOfAll(names, meant)
  return {
    from,
    validFor,
    options: [...unique(columns), ...inSchema.map((table) => offer(table.name, kindOf(table)))],
  }
}

/** @typedef {{ table: Table, alias: string | undefined }} Used */

const NAME = '"[^"]+"|[\\p{L}_][\\p{L}\\p{N}_$]*'
const AFTER = new RegExp(
  `\\b(?:from|join|update|into|,)\\s+(?:(${NAME})\\.)?(${NAME})(?:\\s+(?:as\\s+)?(${NAME}))?`,
  'giu',
)
/** They follow a table, and are no alias of it. */
const NO_ALIAS =
  /^(?:where|on|using|join|inner|left|right|full|cross|natural|group|order|limit|set|values|select|returning|as|union|default)$/i

/** A text that is being written cannot be parsed; what follows FROM and the like tells enough. @param {string} text @param {readonly Table[]} tables @returns {readonly Used[]} */
export const usedIn = (text, tables) =>
  [...text.matchAll(AFTER)].flatMap(([, schema, name = '', alias]) => {
    const table = tables.find(
      (one) => one.name === bare(name) && (schema === undefined ? true : one.schema === bare(schema)),
    )
    const isAlias = alias !== undefined && !NO_ALIAS.test(alias)
    return table === undefined ? [] : [{ table, alias: isAlias ? bare(alias) : undefined }]
  })

/** @param {Names} names @param {readonly Used[]} used */
async function columnsOfAll(names, used) {
  const all = await Promise.all(used.map(({ table }) => names.columnsOf(table)))
  return all.flat().map(({ name, type }) => offer(name, type))
}

/** @param {readonly import('@codemirror/autocomplete').Completion[]} offers */
const unique = (offers) => [...new Map(offers.map((one) => [one.label, one])).values()]

/** @param {Table} table */
const offerOfTable = (table) =>
  table.schema === 'public'
    ? offer(table.name, kindOf(table))
    : {
        ...offer(`${table.schema}.${table.name}`, kindOf(table)),
        apply: `${written(table.schema)}.${written(table.name)}`,
      }

/** @param {readonly Table[]} tables */
const schemasOf = (tables) =>
  [...new Set(tables.map(({ schema }) => schema))].map((name) => offer(name, 'schema'))

/** @param {Table} table */
const kindOf = ({ kind }) => (kind === 'BASE TABLE' ? 'table' : kind.toLowerCase())

/** @param {string} label @param {string} detail */
const offer = (label, detail) => ({ label, detail, apply: written(label), boost: 1 })

/** Names that the database would read otherwise are quoted. @param {string} name */
export const written = (name) => (/^[a-z_][a-z0-9_$]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`)

/** @param {string} name as written */
const bare = (name) => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name.toLowerCase())
