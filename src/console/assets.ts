import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { compressedOnce, type Encoded } from '#kernel/http/compression.ts'

/** A file that browsers load. */
type Asset = { readonly type: string; readonly plain: Buffer }

export type Assets = {
  /** Ends with a digest of all files, so that what is below never changes. */
  readonly base: string
  readonly names: readonly string[]
  /** The modules that these import, themselves or by others, and these. */
  withImports(entries: readonly string[]): readonly string[]
  /** Undefined when there is no file of that name. */
  read(name: string, accepted: string): Promise<EncodedAsset | undefined>
}

type EncodedAsset = Encoded & { readonly type: string }

const FOLDER = path.join(import.meta.dirname, 'assets')

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** The packages that every page needs, and those of the editor of SQL. */
const OF_PAGES = ['preact', 'preact/hooks', 'htm']
const OF_THE_EDITOR = [
  ...['state', 'view', 'language', 'commands', 'autocomplete', 'lang-sql', 'streamparser'].map(
    (name) => `@codemirror/${name}`,
  ),
  ...['common', 'highlight', 'lr'].map((name) => `@lezer/${name}`),
  ...['style-mod', 'crelt', 'w3c-keyname', '@marijn/find-cluster-break'],
]
const fileOf = (name: string): string => `packages/${name.replace('@', '').replaceAll('/', '-')}.js`

/** The import map: the file here of each module of an npm package. */
export const IMPORTS: Readonly<Record<string, string>> = Object.fromEntries(
  [...OF_PAGES, ...OF_THE_EDITOR].map((name) => [name, fileOf(name)]),
)

/** Reads the files of the console, which are the same in a clone and in a package. Each is compressed once, when it is first asked for. */
export function loadAssets(): Assets {
  const files = new Map([...ownFiles(), ...packageFiles()])
  const digest = hash(
    'sha256',
    JSON.stringify([...files].map(([name, { plain }]) => [name, digestOf(plain)])),
  )
  const encoded = new Map([...files].map(([name, { plain }]) => [name, compressedOnce(plain)]))
  return {
    base: `/console/assets/${digest.slice(0, 16)}`,
    names: [...files.keys()],
    withImports: (entries) => withImports(files, entries),
    async read(name, accepted) {
      const [type, encode] = [files.get(name)?.type, encoded.get(name)]
      return type === undefined || encode === undefined ? undefined : { type, ...(await encode(accepted)) }
    },
  }
}

function withImports(files: ReadonlyMap<string, Asset>, entries: readonly string[]): readonly string[] {
  const found = new Set(entries)
  for (const name of found)
    for (const [, path] of String(files.get(name)?.plain ?? '').matchAll(IMPORT)) {
      const imported = path === undefined ? undefined : (IMPORTS[path] ?? besides(name, path))
      if (imported !== undefined && files.has(imported)) found.add(imported)
    }
  return [...found]
}

/** Of our own modules, and the packages, which are minified. What a module loads later is no statement. */
const IMPORT = /^(?:import|export)\b[^'"();]*?from\s*['"]([^'"]+)['"]/gm

const besides = (name: string, path: string): string => new URL(path, `file:///${name}`).pathname.slice(1)

const digestOf = (content: Buffer): string => hash('sha256', content)

const filesHere = (): readonly string[] =>
  readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll(path.sep, '/'))
    .sort()

const ownFiles = (): readonly (readonly [string, Asset])[] =>
  filesHere()
    .filter((name) => !isScreenStyle(name))
    .flatMap((name) => {
      const type = TYPES[path.extname(name)]
      const plain = () => (name === STYLES ? styles() : readFileSync(path.join(FOLDER, name)))
      return type === undefined ? [] : [[name, { type, plain: plain() }]]
    })

/** The styles that every screen uses. Those of one screen stand beside its module, and are served with these as one file. */
const STYLES = 'console.css'

const isScreenStyle = (name: string): boolean => name.startsWith('screens/') && name.endsWith('.css')

const styles = (): Buffer =>
  Buffer.concat(
    [STYLES, ...filesHere().filter(isScreenStyle)].map((name) => readFileSync(path.join(FOLDER, name))),
  )

const packageFiles = (): readonly (readonly [string, Asset])[] =>
  Object.entries(IMPORTS).map(([name, file]) => {
    const text = readFileSync(fileURLToPath(import.meta.resolve(name)), 'utf8')
    const end = text.lastIndexOf(SOURCE_MAP)
    return [file, { type: TYPES['.js'] ?? '', plain: Buffer.from(end < 0 ? text : text.slice(0, end)) }]
  })

/** Source maps are not served. */
const SOURCE_MAP = '\n//# sourceMappingURL='
