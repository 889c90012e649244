import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { ROOT } from '../git.ts'
import { readGrowth } from '../growth/results.ts'
import { readResults } from '../results-file.ts'
import { newestSoak } from '../soak/result.ts'
import { reportOf } from './page.ts'

/** Writes the page and the charts of a file of results, of the newest soak, and of the last growth. */
export async function writeReport(file: string | undefined): Promise<void> {
  if (file === undefined) throw new Error('Name a file: npm run bench -- report bench/results/….json')
  const results = await readResults(file)
  if (results.quick) throw new Error(`${file} is from a quick look, which is no source of a page.`)
  const relative = path.relative(ROOT, path.resolve(file))
  const more = { soak: await newestSoak(), growth: await readGrowth() }
  for (const [name, text] of reportOf(results, relative, more)) {
    await mkdir(path.dirname(path.join(ROOT, name)), { recursive: true })
    await writeFile(path.join(ROOT, name), text)
    console.log(name)
  }
}
