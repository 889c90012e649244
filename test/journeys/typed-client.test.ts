import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { testService } from '#test/harness.ts'
import { removeFolder } from '#test/temporary-folder.ts'

const run = promisify(execFile)
const ROOT = path.resolve(import.meta.dirname, '../..')
const HERE = path.join(import.meta.dirname, 'typed-client')
const MODULES = path.join(ROOT, 'node_modules')

const t = await testService()
/** A separate folder in which only the client is installed. */
const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-typed-client-'))
after(() => removeFolder(folder))

test('a generated TypeScript client is typed without casts, and does what its types say', async () => {
  await symlink(MODULES, path.join(folder, 'node_modules'))
  await copyFile(path.join(HERE, 'program.ts'), path.join(folder, 'program.ts'))
  await writeFile(path.join(folder, 'package.json'), '{ "type": "module" }')
  await writeFile(path.join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  await writeFile(path.join(folder, 'openapi.json'), (await t.anon.get('/openapi.json')).text)

  const generator = path.join(MODULES, 'openapi-typescript/bin/cli.js')
  const hook = path.join(HERE, 'compiler.mjs')
  await node('--import', hook, generator, 'openapi.json', '--output', 'schema.ts')
  await node(path.join(MODULES, 'typescript/bin/tsc'), '--project', 'tsconfig.json')

  const { apiKey } = await t.key(['*'])
  await node('program.ts', t.url, apiKey)
})

/** As strict as our own configuration, so that loose types of the client are errors. */
const TSCONFIG = {
  compilerOptions: {
    target: 'esnext',
    lib: ['esnext', 'dom'],
    module: 'nodenext',
    types: ['node'],
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    noUnusedLocals: true,
    verbatimModuleSyntax: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    noEmit: true,
  },
  files: ['program.ts'],
}

/** Runs a program in the folder. Throws its output if it fails. */
async function node(...args: string[]): Promise<void> {
  try {
    await run(process.execPath, args, { cwd: folder })
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string } // of a program that ended badly
    assert.fail(`${args.join(' ')}\n${stdout}${stderr}`)
  }
}
