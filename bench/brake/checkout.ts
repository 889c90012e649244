import { execFile } from 'node:child_process'
import { mkdtemp, readFile, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { removeFolder } from '#test/temporary-folder.ts'
import { git, ROOT } from '../git.ts'

/** A change is merged in one go, so that commits of the last hours may belong to it. */
const HOURS = 4

/** The commit with its whole hash; undefined if this clone does not have it. */
export const commitOf = (name: string): Promise<string | undefined> =>
  git('rev-parse', '--verify', '--quiet', `${name}^{commit}`).catch(() => undefined)

/**
 * What this state is compared with as the last main: where it left main, if it is not on main itself. On main, the newest commit of the first
 * parents that is four hours older than this one by the dates of commits, so that every clone finds the same.
 */
export async function lastMain(): Promise<string | undefined> {
  const head = await commitOf('HEAD')
  const main = (await commitOf('origin/main')) ?? (await commitOf('main')) ?? 'HEAD'
  const base = await git('merge-base', 'HEAD', main)
  if (base !== head) return base
  const date = Number(await git('show', '-s', '--format=%ct', 'HEAD'))
  const before = `--before=${date - HOURS * 3_600}`
  return (await git('rev-list', '-1', '--first-parent', before, 'HEAD')) || undefined
}

/** The state of a commit in a folder of its own, with packages. `remove` removes it from the clone as well. */
export async function checkOut(commit: string): Promise<{ root: string; remove(): Promise<void> }> {
  const parent = await mkdtemp(path.join(tmpdir(), 'gatehouse-brake-'))
  const root = path.join(parent, commit.slice(0, 8))
  await git('worktree', 'add', '--detach', '--quiet', root, commit)
  await addPackages(root)
  return {
    root,
    async remove() {
      await git('worktree', 'remove', '--force', root)
      await removeFolder(parent)
    },
  }
}

/** The packages of this clone, if production would get the same ones; otherwise its own. */
async function addPackages(root: string): Promise<void> {
  if ((await productionPackages(root)) === (await productionPackages(ROOT)))
    return symlink(path.join(ROOT, 'node_modules'), path.join(root, 'node_modules'))
  console.log(`Installing the packages of ${path.basename(root)} …`)
  await promisify(execFile)('npm', ['ci', '--omit=dev', '--ignore-scripts', '--loglevel=error'], {
    cwd: root,
  })
}

type Entry = { readonly version?: string; readonly dev?: boolean }

async function productionPackages(root: string): Promise<string> {
  const { packages } = JSON.parse(await readFile(path.join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Entry>
  }
  return JSON.stringify(
    Object.entries(packages)
      .filter(([name, { dev }]) => name !== '' && dev !== true)
      .map(([name, { version }]) => [name, version]),
  )
}
