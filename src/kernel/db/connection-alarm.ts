/**
 * Raised when a connection to the control database was silent for too long, or the one that listens was lost: the network or a pooler
 * may have forgotten the others too, and whoever uses one of them would wait for its whole deadline. So those that are idle, or silent
 * for a while, are ended.
 */
export type Alarm = {
  raise(): void
  subscribe(doubt: () => void): void
}

export function createAlarm(): Alarm {
  const subscribers: (() => void)[] = []
  return {
    raise: () => {
      for (const doubt of subscribers) doubt()
    },
    subscribe: (doubt) => void subscribers.push(doubt),
  }
}
