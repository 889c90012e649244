import { closeSync, openSync } from 'node:fs'
import type { PipelinesFile } from '#gateway/pipelines/pipelines-file.ts'
import { createPipelineRegistry, type PipelineRegistry } from '#gateway/pipelines/registry.ts'
import { ConfigError } from '#kernel/config/config.ts'
import { type Context, loadPipelines } from './context.ts'
import { terminal } from './terminal.ts'

/** The pipelines file as all processes of the service use it. Workers that start later get the same text, not the file's present one. */
export type PipelinesInUse = {
  readonly registry: PipelineRegistry
  file(): PipelinesFile | undefined
  /** Reads the file again. A file with problems changes nothing and is logged. */
  reload(): void
}

/** Throws a ConfigError with all problems of the file. */
export function createPipelinesInUse(
  { config, log }: Pick<Context, 'config' | 'log'>,
  onReload: (file: PipelinesFile | undefined) => void,
): PipelinesInUse {
  let { file, pipelines } = loadPipelines(config)
  const registry = createPipelineRegistry(pipelines)
  return {
    registry,
    file: () => file,
    reload() {
      try {
        ;({ file, pipelines } = loadPipelines(config))
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error
        log.error({ event: 'pipelines_rejected', error: error.message }, REJECTED)
        return
      }
      registry.replace(pipelines)
      onReload(file)
      log.info({ event: 'pipelines_loaded', file: file?.name ?? null, pipelines: pipelines.size }, LOADED)
    },
  }
}

const REJECTED = 'the pipelines file has problems; the previous pipelines stay in use'
const LOADED = 'the pipelines file was read again'

/** SIGHUP asks for a reload, and is also what the processes of a terminal receive when it closes. */
export function hasLostTerminal(): boolean {
  if (!terminal.isInteractive) return false
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return false
  } catch {
    return true
  }
}
