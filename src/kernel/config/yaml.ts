import {
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  Scalar,
  visit,
  type YAMLMap,
} from 'yaml'
import type { Environment } from './environment.ts'
import type { Place, Report } from './problems.ts'
import type { Tree } from './tree.ts'

/**
 * Aliases of a document, and the values that they expand to, which the library counts: the uses of an anchor times the aliases in it. A few
 * lines could expand to millions of values, and the library searches the document for the anchor of each alias.
 */
const MAX_ALIASES = 1_000

type YamlOptions = {
  readonly source: string
  readonly env: Environment
  readonly report: Report
  readonly maxAliases?: number
}

/** The tree of a YAML document, with `${NAME}` replaced; `undefined` and a report when it cannot be read. */
export function treeOfYaml(
  text: string,
  { source, env, report, maxAliases = MAX_ALIASES }: YamlOptions,
): Tree | undefined {
  const lines = new LineCounter()
  const lineAt = (offset: number): Place => ({ source, line: lines.linePos(offset).line })
  // Failsafe: scalars stay text, so that a token of digits keeps its leading zero and the setting itself reads `no`.
  const parsing = { schema: 'failsafe', uniqueKeys: false, prettyErrors: false, lineCounter: lines } as const
  const document = parseDocument(text, parsing)
  const wrong = [...document.errors, ...document.warnings]
  for (const { pos, message } of wrong) report(lineAt(pos[0]), '', notYaml(message))
  const reader: YamlReader = { document, lineAt, env, report }
  if (wrong.length > 0 || !checkAliases(reader, maxAliases)) return undefined
  return treeOf(reader, document.contents, { place: lineAt(0), path: '' })
}

/** Without the library's quotation of the text, which may be a password. */
const notYaml = (message: string) => `not valid YAML: ${message.replace(/: .*/s, '')}`

type YamlReader = {
  readonly document: Document
  readonly lineAt: (offset: number) => Place
  readonly env: Environment
  readonly report: Report
}

/** Reports and removes aliases that cannot be resolved. False, with a report, when the others expand to too many values. */
function checkAliases({ document, lineAt, report }: YamlReader, max: number): boolean {
  const tooMany = () => {
    report(lineAt(0), '', `its aliases expand to more than ${max} values`)
    return false
  }
  let count = 0
  visit(document, { Alias: () => (++count > max ? visit.BREAK : undefined) })
  if (count > max) return tooMany()
  visit(document, {
    Alias(_, alias, ancestors) {
      const target = alias.resolve(document)
      if (target && !ancestors.includes(target)) return undefined
      const path = ancestors.filter(isPair).map(({ key }) => String(key))
      const says = target ? 'an alias inside its own anchor' : 'there is no such anchor'
      report(lineAt(alias.range?.[0] ?? 0), path.join('.'), `${says}; quote a value that begins with *`)
      return visit.REMOVE
    },
  })
  try {
    // As maps: the library writes a warning with the text of a key that cannot be the name of a member.
    document.toJS({ maxAliasCount: max, mapAsMap: true })
    return true
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error
    return tooMany()
  }
}

type At = { readonly place: Place; readonly path: string }

function treeOf(reader: YamlReader, node: Node | null | undefined, at: At): Tree {
  if (isAlias(node)) return treeOf(reader, node.resolve(reader.document), at)
  if (isMap<Node | null, Node | null>(node)) return sectionOf(reader, node, at)
  if (isSeq<Node>(node)) {
    const items = node.items.map((item, i) =>
      treeOf(reader, item, below(reader, at, item, `${at.path}[${i}]`)),
    )
    return { kind: 'list', items, place: at.place }
  }
  return isScalar(node) ? scalarOf(reader, node, at) : { kind: 'nothing', place: at.place }
}

/** The place of an aliased value is that of its anchor. A key that was an alias without an anchor is removed, and so null. */
const below = (reader: YamlReader, at: At, node: Node | null, path: string): At => ({
  place: node?.range ? reader.lineAt(node.range[0]) : at.place,
  path,
})

function sectionOf(reader: YamlReader, map: YAMLMap<Node | null, Node | null>, at: At): Tree {
  const entries = new Map<string, Tree>()
  for (const { key, value } of map.items) {
    const name = isScalar(key) ? String(key.value) : ''
    const inner = below(reader, at, key, at.path === '' ? name : `${at.path}.${name}`)
    const first = entries.get(name)
    if (name === '') reader.report(inner.place, at.path, 'a key must be a plain name')
    else if (first) reader.report(inner.place, inner.path, `given twice; first on line ${first.place.line}`)
    else entries.set(name, treeOf(reader, value, inner))
  }
  return { kind: 'section', entries, place: at.place }
}

function scalarOf(reader: YamlReader, scalar: Scalar, at: At): Tree {
  const text = String(scalar.value)
  const isPlain = scalar.type === undefined || scalar.type === Scalar.PLAIN
  if (!isPlain || !/^(~|null|Null|NULL)?$/.test(text)) return textTree(reader, text, { ...at, isPlain })
  if (scalar.anchor) return faulty(reader, at, 'an anchor without a value; quote a value that begins with &')
  return { kind: 'nothing', place: at.place }
}

function textTree(reader: YamlReader, text: string, at: At & { readonly isPlain: boolean }): Tree {
  const wrong: string[] = []
  const replaced = interpolate(text, reader.env, wrong)
  return wrong.length > 0
    ? faulty(reader, at, wrong.join('; '))
    : { kind: 'text', text: replaced, place: at.place, isPlain: at.isPlain }
}

function faulty(reader: YamlReader, { place, path }: At, says: string): Tree {
  reader.report(place, path, says)
  return { kind: 'faulty', place }
}

/** `${NAME}` becomes the variable, once; `$${` a plain `${`. */
function interpolate(text: string, env: Environment, wrong: string[]): string {
  return text.replaceAll(/\$\$\{|\$\{([^}]*)(\}?)/g, (found, name: string | undefined, end: string) => {
    if (name === undefined) return '${'
    const isName = end !== '' && /^[A-Za-z_][A-Za-z0-9_]*$/.test(name)
    const value = isName ? env[name] : undefined
    if (!isName) wrong.push(`\${ begins a variable, as in \${NAME}; write $\${ for the characters themselves`)
    else if (value === undefined) wrong.push(`the environment variable ${name} is not set`)
    return value ?? found
  })
}
