import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFile, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after } from 'node:test'
import { promisify } from 'node:util'
import { createTemporaryFolder, removeFolder } from './temporary-folder.ts'

const run = promisify(execFile)
const MODULES = path.resolve(import.meta.dirname, '../node_modules')

/** As strict as our own configuration. */
const COMPILER_OPTIONS = {
  target: 'esnext',
  lib: ['esnext', 'dom'],
  module: 'nodenext',
  types: ['node'],
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  noUnusedLocals: true,
  noUnusedParameters: true,
  erasableSyntaxOnly: true,
  verbatimModuleSyntax: true,
  allowImportingTsExtensions: true,
  skipLibCheck: true,
  noEmit: true,
}

export type TypeScriptFolder = {
  write(file: string, text: string): Promise<void>
  /** Under its own name. */
  copy(file: string): Promise<void>
  /** Checks all files. `about`: the begin of the message when it fails. */
  compile(about?: string): Promise<void>
  /** Runs a program of the folder. Throws its output if it fails. */
  run(program: string, ...args: string[]): Promise<void>
}

/** A separate folder with the packages of this one. It is removed after the file's tests. */
export async function createTypeScriptFolder(): Promise<TypeScriptFolder> {
  const made = new AsyncDisposableStack()
  // Before anything is awaited, as node:test demands.
  after(() => made.disposeAsync())
  const folder = await createTemporaryFolder()
  made.defer(() => removeFolder(folder))
  const write = (file: string, text: string) => writeFile(path.join(folder, file), text)
  await symlink(MODULES, path.join(folder, 'node_modules'))
  await write('package.json', '{ "type": "module" }')
  await write('tsconfig.json', JSON.stringify({ compilerOptions: COMPILER_OPTIONS, include: ['*.ts'] }))
  const node = async (about: string, ...args: string[]) => {
    try {
      await run(process.execPath, args, { cwd: folder })
    } catch (error) {
      const { stdout, stderr } = error as { stdout: string; stderr: string } // of a program that ended badly
      assert.fail(`${about}\n${stdout}${stderr}`)
    }
  }
  return {
    write,
    copy: (file) => copyFile(file, path.join(folder, path.basename(file))),
    compile: (about = 'tsc') =>
      node(about, path.join(MODULES, 'typescript/bin/tsc'), '--project', 'tsconfig.json'),
    run: (program, ...args) => node(program, program, ...args),
  }
}
