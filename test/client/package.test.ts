import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { testService } from '#test/harness.ts'
import { removeFolder } from '#test/temporary-folder.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
const t = await testService()

/** An application in which only the published package is installed. */
const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-client-'))
after(() => removeFolder(folder))
const installed = path.join(folder, 'node_modules/@gatehouse/client')

const run = promisify(execFile)

/** Runs a program in the folder, beside the service. Throws its output if it fails. */
async function node(...args: readonly string[]): Promise<string> {
  try {
    return (await run(process.execPath, args, { cwd: folder })).stdout
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string } // of a program that ended badly
    return assert.fail(`${args.join(' ')}\n${stdout}${stderr}`)
  }
}

before(async () => {
  await mkdir(installed, { recursive: true })
  await node(path.join(ROOT, 'scripts/client/build.ts'), installed)
  await writeFile(path.join(folder, 'package.json'), '{ "type": "module" }')
})

test('the package runs as it is published, without dependencies', async () => {
  const { apiKey } = await t.key(['gateway.read'])
  await writeFile(
    path.join(folder, 'program.js'),
    `import { createClient, GatehouseError } from '@gatehouse/client'
    const [url, key] = process.argv.slice(2)
    const { error } = await createClient({ url, key }).from('nowhere').select()
    console.log(error instanceof GatehouseError, error.code)`,
  )
  assert.equal(await node('program.js', t.url, apiKey), 'true table_not_found\n')
  const { dependencies, sideEffects, license } = JSON.parse(
    await readFile(path.join(installed, 'package.json'), 'utf8'),
  )
  assert.deepEqual([dependencies, sideEffects, license], [undefined, false, 'Apache-2.0'])
})

test('its types are found by every way of resolving modules, under both versions of TypeScript', async () => {
  await writeFile(
    path.join(folder, 'program.ts'),
    `import { createClient } from '@gatehouse/client'
    import { queryOptions } from '@gatehouse/client/query'
    type Database = { public: { Tables: { books: { Row: { id: number }; Insert: { id: number }; Update: { id?: number }; Relationships: [] } }; Views: {}; Functions: {} } }
    const rows: { id: number }[] = await createClient<Database>({ url: '' }).from('books').select('id').orThrow()
    // @ts-expect-error
    const none: { id: string }[] = rows
    console.log(none, queryOptions)`,
  )
  const ways = [
    ['nodenext', 'nodenext'],
    ['esnext', 'bundler'],
  ]
  const compilers = {
    'node_modules/typescript': ways,
    // Version 7 has given up the way of Node 10, for which bundlers of its time take `main`.
    'packages/client/node_modules/typescript': [...ways, ['esnext', 'node10']],
  }
  for (const [compiler, each] of Object.entries(compilers))
    for (const [module, moduleResolution] of each) {
      const compilerOptions = {
        target: 'es2022',
        lib: ['es2023', 'dom'],
        module,
        moduleResolution,
        types: [],
        strict: true,
        noEmit: true,
      }
      await writeFile(
        path.join(folder, 'tsconfig.json'),
        JSON.stringify({ compilerOptions, files: ['program.ts'] }),
      )
      await node(path.join(ROOT, compiler, 'bin/tsc'), '--project', 'tsconfig.json')
    }
})
