import {
  access,
  chmod,
  constants,
  mkdtemp,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import path from 'node:path'

/**
 * Writes a file whole or not at all, since a compiler or an editor may be reading it. A link stays one, and a file keeps its mode. Throws for
 * a file that is read-only, and for what is no file.
 */
export async function replaceFile(file: string, text: string): Promise<void> {
  const target = await targetOf(file)
  const mode = await modeOf(target)
  try {
    // Others may write the same file.
    const folder = await mkdtemp(path.join(path.dirname(target), `.${path.basename(target)}-`))
    try {
      const part = path.join(folder, 'part')
      await writeFile(part, text)
      if (mode !== undefined) await chmod(part, mode)
      await rename(part, target)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  } catch (error) {
    // Nobody knows the other names.
    if (error instanceof Error && 'path' in error) error.path = target
    throw error
  }
}

/** Where links lead, also to a file that does not exist yet. */
async function targetOf(file: string): Promise<string> {
  try {
    return await realpath(file)
  } catch (error) {
    if (!isAbsent(error)) throw error
    const link = await readlink(file).catch(() => undefined)
    return link === undefined ? file : targetOf(path.resolve(path.dirname(file), link))
  }
}

/** Undefined for a file that does not exist. */
async function modeOf(file: string): Promise<number | undefined> {
  const found = await stat(file).catch((error) => {
    if (isAbsent(error)) return undefined
    throw error
  })
  if (found === undefined) return undefined
  if (!found.isFile()) throw new Error(`${path.resolve(file)} is not a file.`)
  // For root, every file is writable.
  if ((found.mode & 0o222) === 0) throw new Error(`${path.resolve(file)} is read-only.`)
  await access(file, constants.W_OK)
  return found.mode
}

const isAbsent = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'
