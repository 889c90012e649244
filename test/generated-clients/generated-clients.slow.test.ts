import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { ADMIN_KEY, testService } from '#test/harness.ts'
import { removeFolder } from '#test/temporary-folder.ts'
import { NPM_FOLDER, PYTHON_FOLDER, WITHOUT_HEY_API, WITHOUT_PYTHON } from './tools.ts'

const HERE = import.meta.dirname
const MODULES = path.join(HERE, '../../node_modules')
const t = await testService()
const document = (await t.anon.get('/openapi.json')).text
const { apiKey } = await t.key(['*'])

// openapi-typescript: test/journeys/typed-client.test.ts.

test('a client of @hey-api/openapi-ts is generated without a warning, compiles, and does what its types say', {
  skip: WITHOUT_HEY_API,
}, async () => {
  const folder = await folderWith('hey-api/program.ts')
  await symlink(path.join(MODULES, '@types'), path.join(folder, 'types'))
  await writeFile(path.join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  const bin = path.join(NPM_FOLDER, 'node_modules', '.bin')
  const said = await run(
    folder,
    process.execPath,
    path.join(bin, 'openapi-ts'),
    '-i',
    'openapi.json',
    '-o',
    'client',
  )
  assert.doesNotMatch(said, /warn|error/i)
  await run(folder, process.execPath, path.join(bin, 'tsc'), '--project', 'tsconfig.json')
  await run(folder, process.execPath, 'compiled/program.js', t.url, apiKey, ADMIN_KEY)
})

test('a client of openapi-python-client is generated but for bodies of files, its types are right, and it does what they say', {
  skip: WITHOUT_PYTHON,
}, async () => {
  const folder = await folderWith('python/program.py')
  const bin = path.join(PYTHON_FOLDER, 'bin')
  const generate = ['generate', '--path', 'openapi.json', '--output-path', 'generated']
  const said = await run(folder, path.join(bin, 'openapi-python-client'), ...generate)
  assert.deepEqual(said.match(/^WARNING .*|^Unsupported .*/gm), UNSUPPORTED)
  await symlink('generated/gatehouse_client', path.join(folder, 'gatehouse_client'))
  await run(folder, path.join(bin, 'mypy'), '--strict', '--follow-imports=silent', 'program.py')
  await run(folder, path.join(bin, 'python'), 'program.py', t.url, apiKey, ADMIN_KEY)
})

/** The Python generator knows no bodies of CSV or JSON lines. */
const UNSUPPORTED = [
  'WARNING parsing POST /gateway/import within import_. Endpoint will not be generated.',
  'Unsupported content type text/csv',
  'Unsupported content type application/x-ndjson',
]

const TSCONFIG = {
  compilerOptions: {
    target: 'esnext',
    lib: ['esnext', 'dom', 'dom.iterable'],
    module: 'commonjs',
    moduleResolution: 'node10',
    esModuleInterop: true,
    typeRoots: ['types'],
    types: ['node'],
    strict: true,
    skipLibCheck: true,
    outDir: 'compiled',
  },
  files: ['program.ts'],
}

/** A folder with the document and a program, where only the generator has written something. */
async function folderWith(program: string): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-generated-client-'))
  after(() => removeFolder(folder))
  await writeFile(path.join(folder, 'openapi.json'), document)
  await copyFile(path.join(HERE, program), path.join(folder, path.basename(program)))
  return folder
}

/** The Python generator formats its code with a program that it finds by PATH. */
const ENVIRONMENT = { ...process.env, PATH: `${path.join(PYTHON_FOLDER, 'bin')}:${process.env.PATH}` }

/** Runs a program in the folder, and returns its output. Throws with the output if it fails. */
async function run(cwd: string, program: string, ...args: string[]): Promise<string> {
  try {
    const { stdout, stderr } = await promisify(execFile)(program, args, { cwd, env: ENVIRONMENT })
    return stdout + stderr
  } catch (error) {
    const { stdout, stderr, message } = error as { stdout: string; stderr: string; message: string } // of a program that ended badly
    assert.fail(`${message}\n${stdout}${stderr}`)
  }
}
