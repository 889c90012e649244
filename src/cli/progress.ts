import { visible } from '#kernel/visible.ts'
import { terminal } from './terminal.ts'

export type Progress = {
  advance(bytes: number): void
  /** Prints a line that stays, above the bar. */
  warn(line: string): void
  end(): void
}

/** A bar on a terminal when it is known how much there is to do, else only the lines that stay. */
export async function showProgress(total: number | undefined): Promise<Progress> {
  if (total === undefined || !terminal.showsProgress) {
    return { advance: () => {}, warn: terminal.warn, end: () => {} }
  }
  const { MultiBar, Presets } = await import('cli-progress')
  const bars = new MultiBar(
    { format: '|{bar}| {percentage} % · {eta_formatted} left', clearOnComplete: true, hideCursor: true },
    Presets.shades_classic,
  )
  const bar = bars.create(total, 0)
  return {
    advance: (bytes) => bar.increment(bytes),
    warn: (line) => void bars.log(`${visible(line)}\n`),
    end() {
      // Lines wait for the next time the bar is drawn.
      bars.update()
      bars.stop()
    },
  }
}
