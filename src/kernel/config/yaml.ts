import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  Scalar,
  type YAMLMap,
} from 'yaml'
import type { Environment } from './environment.ts'
import type { Place, Report } from './problems.ts'
import type { Tree } from './tree.ts'

/** More than an honest file has. What an alias stands for counts each time: a few lines could mean millions of values. */
const maxValues = 10_000
const maxDepth = 32

type Options = { readonly source: string; readonly env: Environment; readonly report: Report }

/** The tree of a YAML document, with `${NAME}` replaced; `undefined` and a report when it is not YAML. */
export function treeOfYaml(text: string, { source, env, report }: Options): Tree | undefined {
  const lines = new LineCounter()
  const lineAt = (offset: number): Place => ({ source, line: lines.linePos(offset).line })
  // Failsafe: scalars stay text, so that a token of digits keeps its leading zero and `no` is for the setting to read.
  const parsing = { schema: 'failsafe', uniqueKeys: false, prettyErrors: false, lineCounter: lines } as const
  const document = parseDocument(text, parsing)
  const wrong = [...document.errors, ...document.warnings]
  for (const { pos, message } of wrong) report(lineAt(pos[0]), '', notYaml(message))
  if (wrong.length > 0) return undefined
  const walk: Walk = { document, lineAt, env, report, values: 0 }
  return treeOf(walk, document.contents, { place: lineAt(0), path: '', depth: 0 })
}

/** What the parser did not expect it quotes, and that may be a password. */
const notYaml = (message: string) => `not valid YAML: ${message.replace(/: .*/s, '')}`

type Walk = {
  readonly document: Document
  readonly lineAt: (offset: number) => Place
  readonly env: Environment
  readonly report: Report
  /** How many have been met so far. */
  values: number
}

type At = { readonly place: Place; readonly path: string; readonly depth: number }

function treeOf(walk: Walk, node: Node | null | undefined, at: At): Tree {
  walk.values += 1
  if (walk.values > maxValues || at.depth > maxDepth) return tooLarge(walk, at)
  if (isAlias(node)) return aliased(walk, node, at)
  if (isMap<Node, Node | null>(node)) return sectionOf(walk, node, at)
  if (isSeq<Node>(node)) {
    const items = node.items.map((item, i) => treeOf(walk, item, below(walk, at, item, `${at.path}[${i}]`)))
    return { kind: 'list', items, place: at.place }
  }
  return isScalar(node) ? scalarOf(walk, node, at) : { kind: 'nothing', place: at.place }
}

function aliased(walk: Walk, alias: Alias, at: At): Tree {
  const target = alias.resolve(walk.document)
  if (target) return treeOf(walk, target, { ...at, depth: at.depth + 1 })
  return faulty(walk, at, 'there is no such anchor; quote a value that begins with *')
}

/** Where an aliased value stands is where it was anchored. */
const below = (walk: Walk, at: At, node: Node, path: string): At => ({
  place: node.range ? walk.lineAt(node.range[0]) : at.place,
  path,
  depth: at.depth + 1,
})

function sectionOf(walk: Walk, map: YAMLMap<Node, Node | null>, at: At): Tree {
  const entries = new Map<string, Tree>()
  for (const { key, value } of map.items) {
    const name = isScalar(key) ? String(key.value) : ''
    const inner = below(walk, at, key, at.path === '' ? name : `${at.path}.${name}`)
    const first = entries.get(name)
    if (name === '') walk.report(inner.place, at.path, 'a key must be a plain name')
    else if (first) walk.report(inner.place, inner.path, `given twice; first on line ${first.place.line}`)
    else entries.set(name, treeOf(walk, value, inner))
  }
  return { kind: 'section', entries, place: at.place }
}

/** Said once, however many values follow. */
function tooLarge(walk: Walk, at: At): Tree {
  if (walk.values === Number.POSITIVE_INFINITY) return { kind: 'faulty', place: at.place }
  walk.values = Number.POSITIVE_INFINITY
  return faulty(walk, at, `more than ${maxValues} values or ${maxDepth} levels, aliases included`)
}

function scalarOf(walk: Walk, scalar: Scalar, at: At): Tree {
  const text = String(scalar.value)
  const isPlain = scalar.type === undefined || scalar.type === Scalar.PLAIN
  if (!isPlain || !/^(~|null|Null|NULL)?$/.test(text)) return textOf(walk, text, at)
  if (scalar.anchor) return faulty(walk, at, 'an anchor without a value; quote a value that begins with &')
  return { kind: 'nothing', place: at.place }
}

function textOf(walk: Walk, text: string, at: At): Tree {
  const wrong: string[] = []
  const replaced = interpolate(text, walk.env, wrong)
  return wrong.length > 0
    ? faulty(walk, at, wrong.join('; '))
    : { kind: 'text', text: replaced, place: at.place }
}

function faulty(walk: Walk, { place, path }: At, says: string): Tree {
  walk.report(place, path, says)
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
