/**
 * Raised when a connection to the control database was silent for too long, or the one that listens was lost: the network or a pooler
 * may have forgotten the others too, and whoever uses one of them would wait for its whole deadline. So those that are idle are ended.
 */
export type Alarm = {
  raise(): void
  heed(endIdle: () => void): void
}

export function createAlarm(): Alarm {
  const heeding: (() => void)[] = []
  return {
    raise: () => {
      for (const endIdle of heeding) endIdle()
    },
    heed: (endIdle) => void heeding.push(endIdle),
  }
}
