import type { Profile, ProfileNode } from './profile.ts'

export type Step = {
  readonly step: string
  /** µs of the whole profile. */
  readonly time: number
  /** Its functions with the most time. */
  readonly busiest: string
}

/** The step of a function by the path of its file: the first one that fits. Node's streams, sockets and native functions have that of their caller. */
const STEPS: readonly (readonly [step: string, path: RegExp])[] = [
  ['rows to JSON', /postgres\/protocol\/(rows|json-|byte-copies|timestamps|column-formats)/],
  ['write to the database', /postgres\/protocol\/(wire|connection|row-query)/],
  ['read from the database', /postgres\/protocol\/|node_modules\/pg/],
  ['SQL text', /postgres\/(sql\/|roles\/)/],
  ['run a statement', /postgres\/|databases\/drivers\/(?!planner|catalogue)/],
  ['body', /bodies\/(body|collect|escaped)|request\/json\.ts|content-type-parser|secure-json/],
  ['validation', /bodies\/|typebox|fastify\/lib\/validation/],
  ['request and plan', /src\/databases\//],
  ['key and client', /gateway\/(caller|keys|clients)\/|coherent-cache|kernel\/http\/(presented|session)/],
  ['answer', /send-result|result-facts|_http_outgoing|fastify\/lib\/reply|node:_http_server:writeHead/],
  ['verb, event, metrics', /gateway\/|src\/kernel\/(?!http)|prom-client/],
  ['hooks', /src\/kernel\/http|@fastify\/(cors|cookie)|fastify\/lib\/hooks/],
  ['Fastify', /node_modules\//],
  ['HTTP', /node:_http|node:internal\/http|node:querystring/],
  ['timers and promises', /node:internal\/(timers|process)|node:timers/],
]

const WITHOUT_STEP: Readonly<Record<string, string>> = {
  '(garbage collector)': 'garbage collection',
  '(program)': 'event loop, parser, system calls of reading',
}

/** µs of each step, the dearest first; without the time in which the process was idle. */
export function stepsOf({ nodes, samples, timeDeltas }: Profile): readonly Step[] {
  const parents = new Map(nodes.flatMap((node) => (node.children ?? []).map((id) => [id, node] as const)))
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const steps = new Map<string, Map<string, number>>()
  for (const [index, id] of samples.entries()) {
    const node = byId.get(id)
    const step = node && stepOf(node, parents)
    if (node === undefined || step === undefined) continue
    const functions = steps.get(step) ?? new Map<string, number>()
    steps.set(step, functions)
    const name = nameOf(node)
    functions.set(name, (functions.get(name) ?? 0) + (timeDeltas[index] ?? 0))
  }
  return [...steps]
    .map(([step, functions]) => ({ step, time: sum(functions.values()), busiest: busiestOf(functions) }))
    .toSorted((one, other) => other.time - one.time)
}

const sum = (times: Iterable<number>): number => [...times].reduce((total, time) => total + time, 0)

function busiestOf(functions: ReadonlyMap<string, number>): string {
  const all = sum(functions.values())
  return [...functions]
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, Number(process.env.MOST ?? 3))
    .map(([name, time]) => `${name} ${Math.round((100 * time) / all)} %`)
    .join(', ')
}

/** Undefined: idle. */
function stepOf(node: ProfileNode, parents: ReadonlyMap<number, ProfileNode>): string | undefined {
  const { functionName } = node.callFrame
  if (functionName === '(idle)') return undefined
  for (let at: ProfileNode | undefined = node; at !== undefined; at = parents.get(at.id)) {
    const place = `${at.callFrame.url}:${at.callFrame.functionName}`
    const [step] = STEPS.find(([, path]) => path.test(place)) ?? []
    if (step !== undefined) return step
  }
  return WITHOUT_STEP[functionName] ?? 'other'
}

const nameOf = ({ callFrame: { functionName, url, lineNumber } }: ProfileNode): string =>
  functionName === '' ? `${url.split('/').at(-1)}:${lineNumber + 1}` : functionName
