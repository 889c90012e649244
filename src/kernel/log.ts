import { createRequire } from 'node:module'
import { type DestinationStream, pino, stdTimeFunctions } from 'pino'
import { escapeInvisible } from './invisible-characters.ts'
import { redact, redactText } from './redact.ts'

type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

/** Facts first, then a sentence: `log.info({ event: 'ready', port }, 'ready')`. */
export type Log = {
  debug(facts: Record<string, unknown>, message: string): void
  info(facts: Record<string, unknown>, message: string): void
  warn(facts: Record<string, unknown>, message: string): void
  error(facts: Record<string, unknown>, message: string): void
}

type LogOptions = {
  readonly level: Level
  readonly format: 'json' | 'pretty'
  readonly destination?: DestinationStream
}

/** Structured log to standard output; every record passes `redact` before it is written. */
export function createLog(options: LogOptions): Log {
  // JSON escapes control characters; the terminal format does not.
  const shown = options.format === 'pretty' ? escapeInvisible : (text: string) => text
  const destination = options.destination ?? (options.format === 'pretty' ? pretty() : output())
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        // `redact` keeps the shape: a record in, a record out.
        log: (record) => eachText(redact(record), shown) as Record<string, unknown>,
      },
      hooks: {
        logMethod(parts, write) {
          const [facts, message] = parts
          write.apply(this, [facts, typeof message === 'string' ? shown(redactText(message)) : message])
        },
      },
    },
    destination,
  )
}

/** Changes each text of a record that `redact` has copied. */
function eachText(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  if (Array.isArray(value)) return value.map((item) => eachText(item, change))
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, eachText(item, change)]))
}

/** Characters that are kept in memory while the disk is full; further records are lost. */
const MAX_WAITING = 1_048_576

/** With a full disk, or without a reader, records are lost and the process goes on. */
function output() {
  const stream = pino.destination({ dest: 1, sync: true, maxLength: MAX_WAITING })
  stream.on('error', () => {})
  return stream
}

/** The terminal format: time, level, sentence, then the facts on one line. Loaded only where it is used. */
function pretty(): DestinationStream {
  const load = createRequire(import.meta.url)
  const { build }: typeof import('pino-pretty') = load('pino-pretty')
  return build({
    translateTime: 'HH:MM:ss.l',
    ignore: 'pid,hostname',
    singleLine: true,
    destination: output(),
  })
}
