import { boundGarbage } from '#cli/memory.ts'
import { program } from '#cli/program.ts'
import { fatal } from '#cli/terminal.ts'

/** Runs one command of `gatehouse`. Exit codes: 0 done, 1 failed, 2 wrong usage. */
export async function main(argv: readonly string[]): Promise<void> {
  boundGarbage()
  try {
    const gatehouse = await program(argv)
    await gatehouse.parseAsync([...argv])
  } catch (error) {
    await fatal(error)
  }
}
