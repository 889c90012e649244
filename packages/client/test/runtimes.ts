/**
 * `node packages/client/test/runtimes.ts [RUNTIME…]` runs the cases of the client against a service, in each runtime. One that is missing is
 * skipped and says why; `npm run runtimes` downloads those that are programs.
 */
import { withoutBrowser } from '../../../test/browser/chromium.ts'
import type { RunCases } from './runtimes/case-result.ts'
import { openCasePage } from './runtimes/chromium.ts'
import { inProgram } from './runtimes/command.ts'
import { lackOf, PROGRAMS, pathOf } from './runtimes/programs.ts'
import { startRuntimeService } from './runtimes/service.ts'
import { inWorkerd } from './runtimes/workerd.ts'

const page = await openCasePage()

const START: Readonly<Record<string, (program: string) => RunCases>> = {
  // Nothing but the files and the service.
  Deno: (program) =>
    inProgram(program, ['run', '--no-config', '--no-lock', '--no-remote', '--no-npm', '--allow-net']),
  Bun: (program) => inProgram(program, ['run', '--no-install']),
  workerd: inWorkerd,
}

type Runtime = { readonly name: string; readonly lack: string | undefined; readonly run: RunCases }

const RUNTIMES: readonly Runtime[] = [
  { name: 'Node', lack: undefined, run: inProgram(process.execPath) },
  ...PROGRAMS.map((program) => ({
    name: program.name,
    lack: lackOf(program),
    run: (START[program.name] ?? inProgram)(pathOf(program)),
  })),
  { name: 'Chromium', lack: withoutBrowser || undefined, run: page.run },
]

const counts = { passed: 0, failed: 0, skipped: 0 }

async function runIn({ name, lack, run }: Runtime): Promise<void> {
  if (lack !== undefined) {
    counts.skipped++
    return console.log(`${name}: skipped, ${lack}`)
  }
  const since = performance.now()
  const results = await run(await service.context(name)).catch((error) => [
    { name: 'the cases run', error: `${error.message}\n${error.stderr ?? ''}` },
  ])
  const failures = results.filter(({ error }) => error !== undefined)
  counts.passed += results.length - failures.length
  counts.failed += failures.length
  const seconds = ((performance.now() - since) / 1_000).toFixed(1)
  console.log(`${name}: ${results.length - failures.length} of ${results.length} cases, ${seconds} s`)
  for (const { name: of, error } of failures) console.log(`  ✖ ${of}\n    ${error}`)
}

const service = await startRuntimeService(page.origin)
try {
  const wanted = process.argv.slice(2)
  for (const runtime of RUNTIMES)
    if (wanted.length === 0 || wanted.includes(runtime.name)) await runIn(runtime)
} finally {
  page.close()
  await service.stop()
}
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)
process.exitCode = counts.failed > 0 ? 1 : 0
