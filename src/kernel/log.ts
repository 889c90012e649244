import { createRequire } from 'node:module'
import { type DestinationStream, pino, stdTimeFunctions } from 'pino'
import { redact, redactText } from './redact.ts'

export type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

/** Facts first, then a sentence: `log.info({ event: 'ready', port }, 'ready')`. */
export type Log = {
  debug(facts: Record<string, unknown>, message: string): void
  info(facts: Record<string, unknown>, message: string): void
  warn(facts: Record<string, unknown>, message: string): void
  error(facts: Record<string, unknown>, message: string): void
}

export type LogOptions = {
  readonly level: Level
  readonly format: 'json' | 'pretty'
  readonly destination?: DestinationStream
}

/** Structured log to standard output; every record passes `redact` before it is written. */
export function createLog(options: LogOptions): Log {
  const destination = options.destination ?? (options.format === 'pretty' ? pretty() : pino.destination(1))
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        // `redact` keeps the shape: a record in, a record out.
        log: (record) => redact(record) as Record<string, unknown>,
      },
      hooks: {
        logMethod(parts, write) {
          const [facts, message] = parts
          write.apply(this, [facts, typeof message === 'string' ? redactText(message) : message])
        },
      },
    },
    destination,
  )
}

/** For people at a terminal: time, level, sentence, then the facts on one line. Loaded only where it is used. */
function pretty(): DestinationStream {
  const load = createRequire(import.meta.url)
  const { build }: typeof import('pino-pretty') = load('pino-pretty')
  return build({ translateTime: 'HH:MM:ss.l', ignore: 'pid,hostname', singleLine: true })
}
