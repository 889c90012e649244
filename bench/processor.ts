import { readdirSync, readFileSync } from 'node:fs'

/**
 * Processor time of a process and all of its descendants since their starts, in µs, user and system, with every thread. The time of living
 * threads comes from schedstat (nanoseconds); children that have ended are in their parent's stat (in ticks of 10 ms), so that no connection of
 * PostgreSQL is lost. Linux only.
 */
export function processorTime(root: number): number {
  return treeOf(root).reduce((sum, pid) => sum + threadsOf(pid) + endedChildrenOf(pid), 0)
}

const MICROSECONDS_OF_A_TICK = 10_000

function threadsOf(pid: number): number {
  return listed(`/proc/${pid}/task`).reduce((sum, thread) => {
    const [nanoseconds = '0'] = content(`/proc/${pid}/task/${thread}/schedstat`).split(' ')
    return sum + Number(nanoseconds) / 1_000
  }, 0)
}

/** Children that have ended and were waited for. proc(5): cutime and cstime are fields 16 and 17. */
export function endedChildrenOf(pid: number): number {
  const fields = fieldsOf(pid)
  return (Number(fields[13] ?? 0) + Number(fields[14] ?? 0)) * MICROSECONDS_OF_A_TICK
}

/** The fields after the name, which is in brackets and may contain spaces. The first one is the state. */
const fieldsOf = (pid: number | string): readonly string[] =>
  content(`/proc/${pid}/stat`).split(') ').at(-1)?.split(' ') ?? []

export const parentOf = (pid: number | string): number => Number(fieldsOf(pid)[1])

/** The process first, then its descendants. */
export function treeOf(root: number): readonly number[] {
  const children = Map.groupBy(
    listed('/proc').filter((name) => /^\d+$/.test(name)),
    parentOf,
  )
  const under = (pid: number): readonly number[] => [
    pid,
    ...(children.get(pid) ?? []).flatMap((child) => under(Number(child))),
  ]
  return under(root)
}

/** Resident memory of a process and its descendants in MiB. */
export const residentMemory = (root: number): number =>
  treeOf(root).reduce(
    (sum, pid) => sum + Number(/VmRSS:\s+(\d+)/.exec(content(`/proc/${pid}/status`))?.[1] ?? 0) / 1_024,
    0,
  )

/** The same without what other processes share: each page counts in equal parts for those that have it. Takes a millisecond a process. */
export const proportionalMemory = (root: number): number =>
  treeOf(root).reduce(
    (sum, pid) => sum + Number(/^Pss:\s+(\d+)/m.exec(content(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0) / 1_024,
    0,
  )

/** Empty when the process has ended. */
function content(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

function listed(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
