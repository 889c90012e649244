import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { test } from 'node:test'

const ROOT = path.resolve(import.meta.dirname, '../..')
const TYPES = path.join(import.meta.dirname, 'types')
const COMPILERS = {
  'TypeScript 7': path.join(ROOT, 'node_modules/typescript/bin/tsc'),
  'TypeScript 5.9': path.join(ROOT, 'packages/client/node_modules/typescript/bin/tsc'),
}

for (const [name, compiler] of Object.entries(COMPILERS))
  test(`every form of a request has the type of its rows under ${name}, and mistakes are errors`, () => {
    const { status, stdout } = spawnSync(process.execPath, [compiler, '--project', TYPES], {
      encoding: 'utf8',
    })
    assert.equal(status, 0, stdout)
  })

/** The part of TypeScript's own API that an editor uses. */
type LanguageService = {
  getQuickInfoAtPosition(
    file: string,
    at: number,
  ): { readonly displayParts: readonly { readonly text: string }[] } | undefined
}
type TypeScript = {
  createLanguageService(host: object): LanguageService
  readonly ScriptSnapshot: { fromString(text: string): object }
  readonly sys: {
    readFile(file: string): string | undefined
    fileExists(file: string): boolean
    readDirectory: unknown
  }
  getDefaultLibFilePath(options: object): string
  readConfigFile(file: string, read: (file: string) => string | undefined): { readonly config: object }
  parseJsonConfigFileContent(config: object, host: object, folder: string): { readonly options: object }
}

test('an editor shows rows as their columns, and no machinery', () => {
  const ts: TypeScript = createRequire(path.join(ROOT, 'packages/client/package.json'))('typescript')
  const file = path.join(TYPES, 'shown.ts')
  const { config } = ts.readConfigFile(path.join(TYPES, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, TYPES)
  const service = ts.createLanguageService({
    getCompilationSettings: () => options,
    getScriptFileNames: () => [file],
    getScriptVersion: () => '1',
    getScriptSnapshot: (name: string) => {
      const text = ts.sys.readFile(name)
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text)
    },
    getCurrentDirectory: () => TYPES,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: ts.sys.fileExists,
    readFile: ts.sys.readFile,
    readDirectory: ts.sys.readDirectory,
  })
  const text = readFileSync(file, 'utf8')
  const shown = (name: string): string => {
    const parts =
      service.getQuickInfoAtPosition(file, text.indexOf(`const ${name} `) + 'const '.length)?.displayParts ??
      []
    return parts
      .map((part) => part.text)
      .join('')
      .replace(/\s+/g, ' ')
      .replace(/^const \w+: /, '')
  }
  assert.equal(shown('rows'), '{ id: number; orders: { at: string; customer_id: { name: string; }; }; }[]')
  assert.equal(shown('byText'), '{ sum: number | null; lines: { product: string; }[]; }')
  assert.equal(
    shown('every'),
    "{ order_id: number; position: number; product: string; 'unit price': number; }[]",
  )
  assert.equal(shown('wrong'), `SelectError<"orders has no column \\"nope\\"">[]`)
  assert.equal(shown('written'), '{ id: number; }')
  assert.equal(shown('done'), '[{ id: number; }, null]')
  assert.equal(shown('called'), 'number')
})
