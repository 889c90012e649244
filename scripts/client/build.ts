/** Writes the package `@gatehouse/client` as it is published: `node scripts/client/build.ts [FOLDER]`, by default in packages/client. */
import { spawnSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'

const ROOT = path.resolve(import.meta.dirname, '../..')
const SOURCE = path.join(ROOT, 'packages/client')
const folder = path.resolve(process.argv[2] ?? SOURCE)
const dist = path.join(folder, 'dist')

rmSync(dist, { recursive: true, force: true })
const compiler = path.join(ROOT, 'node_modules/typescript/bin/tsc')
const { status } = spawnSync(process.execPath, [compiler, '--project', SOURCE, '--outDir', dist], {
  stdio: 'inherit',
})
if (status !== 0) process.exit(status ?? 1)

// The compiler rewrites imports in programs, but not in types.
for (const name of globSync('**/*.d.ts', { cwd: dist })) {
  const file = path.join(dist, name)
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, text.replace(/((?:from |import\()['"]\.{1,2}\/[^'"]*)\.ts(?=['"])/g, '$1.js'))
}

mkdirSync(folder, { recursive: true })
cpSync(path.join(ROOT, 'LICENSE'), path.join(folder, 'LICENSE'))
if (folder !== SOURCE)
  for (const name of ['package.json', 'README.md']) cpSync(path.join(SOURCE, name), path.join(folder, name))
