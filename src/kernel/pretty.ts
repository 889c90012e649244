import type { DestinationStream } from 'pino'
import pretty from 'pino-pretty'

/** For people at a terminal: time, level, sentence, then the facts on one line. */
export function pinoPretty(): DestinationStream {
  return pretty({
    colorize: process.stdout.isTTY,
    translateTime: 'HH:MM:ss.l',
    ignore: 'pid,hostname',
    singleLine: true,
  })
}
