import { readFile, writeFile } from 'node:fs/promises'

/** Writes a generated file; with `--check` on the command line, fails when the file differs instead. */
export async function writeGenerated(file: string, text: string): Promise<void> {
  if (!process.argv.includes('--check')) return writeFile(file, text)
  const found = await readFile(file, 'utf8').catch(() => '')
  if (found === text) return
  process.stderr.write(`${file} is stale: run \`npm run generate\`\n`)
  process.exitCode = 1
}
