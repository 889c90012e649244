/**
 * Raised when a connection to the control database was silent for too long, or the one that listens was lost. The network or a pooler
 * may have dropped the other connections too, and each use of one would then wait for its whole deadline. So the pools close
 * connections that are idle or have been silent for a while.
 */
export type Alarm = {
  raise(): void
  subscribe(suspect: () => void): void
}

export function createAlarm(): Alarm {
  const subscribers: (() => void)[] = []
  return {
    raise: () => {
      for (const suspect of subscribers) suspect()
    },
    subscribe: (suspect) => void subscribers.push(suspect),
  }
}
