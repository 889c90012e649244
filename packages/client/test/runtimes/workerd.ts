import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { cp, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { freePort } from '../../../../test/free-port.ts'
import { createTemporaryFolder, removeFolder } from '../../../../test/temporary-folder.ts'
import { PATIENCE, type RunCases } from './case-result.ts'

const CLIENT = path.join(import.meta.dirname, '../..')

/** The runtime of Cloudflare's workers, with one worker that runs the cases. */
export const inWorkerd =
  (program: string): RunCases =>
  async (context) => {
    const folder = await createTemporaryFolder()
    const port = await freePort()
    try {
      const modules = await copyModules(folder)
      await writeFile(path.join(folder, 'config.capnp'), configOf(port, modules))
      const args = ['serve', path.join(folder, 'config.capnp')]
      const server = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'] })
      try {
        return await asked(`http://127.0.0.1:${port}`, context, server)
      } finally {
        server.kill()
      }
    } finally {
      await removeFolder(folder)
    }
  }

/** workerd finds embedded files beside its configuration only. The first module is the worker. */
async function copyModules(folder: string): Promise<readonly string[]> {
  const built = globSync('dist/**/*.js', { cwd: CLIENT })
  const files = ['test/worker.mjs', 'test/cases.mjs', ...built]
  for (const file of files) await cp(path.join(CLIENT, file), path.join(folder, file))
  return files
}

const configOf = (port: number, modules: readonly string[]): string => `
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "internet", network = (allow = ["public", "private", "local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const main :Workerd.Worker = (
  modules = [${modules.map((file) => `(name = "${file}", esModule = embed "${file}")`).join(', ')}],
  compatibilityDate = "2026-11-01",
);
`

async function asked(url: string, context: object, server: ReturnType<typeof spawn>): ReturnType<RunCases> {
  const ended = once(server, 'exit').then(([code]) => Promise.reject(new Error(`workerd ended with ${code}`)))
  const body = JSON.stringify(context)
  for (;;) {
    const signal = AbortSignal.timeout(PATIENCE)
    const answer = await Promise.race([fetch(url, { method: 'POST', body, signal }).catch(reasonOf), ended])
    if (answer instanceof Response) return answer.json() as ReturnType<RunCases> // as the worker answers
    if (answer !== 'ECONNREFUSED') throw answer
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** It listens a moment after its start. */
const reasonOf = (error: Error & { cause?: { code?: string } }): unknown =>
  error.cause?.code === 'ECONNREFUSED' ? 'ECONNREFUSED' : error
