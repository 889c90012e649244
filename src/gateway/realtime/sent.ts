import { bytesOf, type Delivery } from './cohort.ts'

/** The last deliveries of a stream, by their numbers: its reader may not have had them when the connection breaks. */
export type Sent = {
  /** The number of the last one. */
  last(): number
  add(table: string, events: Delivery['events']): void
  /** The page begins anew here, with a number of its own. */
  begin(): void
  /** Those after this number; undefined if they are not known any more. */
  after(number: number): readonly Sending[] | undefined
}

type Sending = { readonly number: number; readonly table: string; readonly events: Delivery['events'] }

const MOST_DELIVERIES = 64
/** Of the keys in them: about a thousand of a number or a uuid. */
const MOST_BYTES = 200_000

export function createSent(): Sent {
  const sendings: Sending[] = []
  let [last, bytes, known] = [0, 0, 0]
  return {
    last: () => last,
    add(table, events) {
      sendings.push({ number: ++last, table, events })
      bytes += sizeOf(events)
      while (sendings.length > MOST_DELIVERIES || bytes > MOST_BYTES) {
        const gone = sendings.shift()
        bytes -= sizeOf(gone?.events ?? [])
        known = gone?.number ?? last
      }
    },
    begin() {
      sendings.length = 0
      bytes = 0
      known = ++last
    },
    after: (number) =>
      number < known || number > last ? undefined : sendings.filter((one) => one.number > number),
  }
}

const sizeOf = (events: Delivery['events']): number =>
  events.reduce((sum, { key }) => sum + bytesOf(key.json), 0)
