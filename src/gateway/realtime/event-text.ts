/** Texts of server-sent events (HTML, section 9.2). An event has no blank line at its end yet, so that an id can follow. */

/** `data` is JSON. Values of type json may have line breaks between their tokens, and each line needs its own field. */
export const eventText = (event: string, data: string): string =>
  `event: ${event}\ndata: ${data.replaceAll(/\r\n|\r|\n/g, '\ndata: ')}\n`

/** The end of the last of several events. */
export const ending = (id?: string): string => `${idLine(id)}\n`

/** One whole event. */
export const finished = (event: string, id?: string): string => event + ending(id)

/** An id without an event: where to resume after a silence. */
export const silence = (id?: string): string => `:\n${ending(id)}`

const idLine = (id: string | undefined): string => (id === undefined ? '' : `id: ${id}\n`)

/** The time after which a browser asks again, milliseconds. */
export const RETRY = 'retry: 2000\n\n'

export type ResetReason =
  | 'table_changed'
  | 'policy_changed'
  | 'rights_changed'
  | 'too_old'
  | 'too_many'
  | 'slow_reader'
  | 'restored'
  | 'epoch'

export type EndReason = 'session_ended' | 'token_expired' | 'key_revoked' | 'expired' | 'shutting_down'

export const reset = (reason: ResetReason): string => eventText('reset', JSON.stringify({ reason }))
export const end = (reason: EndReason): string => eventText('end', JSON.stringify({ reason }))
