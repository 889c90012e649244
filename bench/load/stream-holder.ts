/**
 * A process that holds streams of live rows. Its parent sends a `HolderOrder` and gets a `HolderAnswer`, one after the other; it ends with its
 * parent.
 */
import { Agent, request } from 'node:http'

/** Streams of one body, each with its headers. */
export type Opening = {
  readonly url: string
  readonly body: string
  readonly headers: readonly Readonly<Record<string, string>>[]
}

export type HolderOrder =
  | ({ readonly kind: 'open'; readonly name: string } & Opening)
  /** Asks when so many changes in all have come by the streams of this name. */
  | { readonly kind: 'wait'; readonly name: string; readonly changes: number }

/** `processor`: what the holder itself has used since the last answer, µs. */
export type HolderAnswer = { readonly processor: number } | { readonly failure: string }

type Group = { changes: number; wanted: number; arrived: () => void }

const AT_ONCE = 50
const CHANGE = /event: change\n/g
/** One character less than what is looked for. */
const OVERLAP = 'event: change\n'.length - 1

const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY })
const groups = new Map<string, Group>()
let lost: string | undefined
let before = process.cpuUsage()

process.on('disconnect', () => process.exit())
process.on('message', async (order: HolderOrder) => {
  try {
    await (order.kind === 'open' ? openAll(order) : wait(order))
    if (lost !== undefined) throw new Error(lost)
    const { user, system } = process.cpuUsage(before)
    before = process.cpuUsage()
    process.send?.({ processor: user + system } satisfies HolderAnswer)
  } catch (error) {
    process.send?.({ failure: String(error) } satisfies HolderAnswer)
  }
})

async function openAll({ name, headers, ...asked }: HolderOrder & { kind: 'open' }): Promise<void> {
  const group: Group = { changes: 0, wanted: Number.POSITIVE_INFINITY, arrived: () => {} }
  groups.set(name, group)
  const left = headers.values()
  const openNext = async () => {
    for (const own of left) await open(asked, own, group)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, openNext))
}

/** Resolves when the stream has shown its rows. */
function open(
  { url, body }: Pick<Opening, 'url' | 'body'>,
  headers: Opening['headers'][number],
  group: Group,
) {
  return new Promise<void>((resolve, reject) => {
    const asking = request(`${url}/realtime`, { method: 'POST', agent, headers }, (response) => {
      let past = ''
      response.setEncoding('latin1')
      response.on('data', (chunk: string) => {
        const text = past + chunk
        past = text.slice(-OVERLAP)
        if (response.statusCode !== 200) reject(new Error(text))
        if (text.includes('event: ready')) resolve()
        if (/event: (reset|end)\n/.test(text)) lost = text
        group.changes += text.match(CHANGE)?.length ?? 0
        if (group.changes >= group.wanted) group.arrived()
      })
      response.on('close', () => {
        lost = 'a stream has ended'
      })
    })
    asking.on('error', reject)
    asking.end(body)
  })
}

function wait({ name, changes }: HolderOrder & { kind: 'wait' }): Promise<void> | undefined {
  const group = groups.get(name)
  if (group === undefined) throw new Error(`no streams of ${name}`)
  if (group.changes >= changes) return undefined
  return new Promise((resolve) => {
    Object.assign(group, { wanted: changes, arrived: resolve })
  })
}
