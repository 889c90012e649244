import { createReadStream } from 'node:fs'
import { addAbortSignal } from 'node:stream'
import { escapeInvisible } from '#kernel/invisible-characters.ts'
import { terminal } from './terminal.ts'

export type Progress = {
  advance(by: number): void
  advanceTo(value: number): void
  /** Prints a permanent line above the bar. */
  warn(line: string): void
  end(): void
}

/** Shows a progress bar if the total is known and stderr is a terminal. Otherwise prints the warnings only. */
export async function showProgress(total: number | undefined): Promise<Progress> {
  if (total === undefined || !terminal.showsProgress) {
    return { advance: () => {}, advanceTo: () => {}, warn: terminal.warn, end: () => {} }
  }
  const { MultiBar, Presets } = await import('cli-progress')
  const bars = new MultiBar(
    {
      format: '|{bar}| {percentage} % · {eta_formatted} left',
      formatTime: timeLeft,
      clearOnComplete: true,
      hideCursor: true,
    },
    Presets.shades_classic,
  )
  const bar = bars.create(total, 0)
  return {
    advance: (by) => bar.increment(by),
    advanceTo: (value) => bar.update(value),
    warn: (line) => void bars.log(`${escapeInvisible(line)}\n`),
    end() {
      // Logged lines are printed at the next redraw, so redraw once more before stopping.
      bars.update()
      bars.stop()
    },
  }
}

/** The time is a word while nothing advances, which the default of the library prints as `NFs`. */
export function timeLeft(seconds: unknown): string {
  if (typeof seconds !== 'number') return '…'
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** The bytes of a file, or of standard input for `-`. */
export async function* readChunks(
  file: string,
  { advance }: Progress,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const stream = file === '-' ? terminal.input : createReadStream(file, { highWaterMark: 256 * 1_024 })
  for await (const chunk of addAbortSignal(signal, stream)) {
    // Both streams have no encoding, so they yield buffers.
    const bytes = chunk as Buffer
    yield bytes
    advance(bytes.length)
  }
}
