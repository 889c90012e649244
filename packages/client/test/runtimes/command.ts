import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { PATIENCE, type RunCases } from './case-result.ts'

const run = promisify(execFile)
const SCRIPT = path.join(import.meta.dirname, '../run-cases.mjs')

/** A runtime that runs a file with arguments. A program that does not end is stopped, and fails. */
export const inProgram =
  (program: string, args: readonly string[] = []): RunCases =>
  async (context) => {
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, DENO_NO_UPDATE_CHECK: '1' }
    const options = { timeout: PATIENCE, maxBuffer: 2 ** 24, env }
    const { stdout } = await run(program, [...args, SCRIPT, JSON.stringify(context)], options)
    return JSON.parse(stdout)
  }
