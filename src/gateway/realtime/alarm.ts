/** Waits of a loop, one at a time. */
export type Alarm = {
  /** Waits for so many milliseconds, or until it rings. If it has rung since the last wait, not at all. True: it has. */
  wait(milliseconds: number): Promise<boolean>
  /** Waits for so many milliseconds. */
  pause(milliseconds: number): Promise<void>
  ring(): void
}

export function createAlarm(): Alarm {
  let hasRung = false
  let stop: (() => void) | undefined
  const pause = (milliseconds: number): Promise<void> =>
    new Promise((resolve) => void setTimeout(resolve, milliseconds).unref())
  return {
    pause,
    async wait(milliseconds) {
      if (!hasRung)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, milliseconds).unref()
          stop = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      stop = undefined
      const rang = hasRung
      hasRung = false
      return rang
    },
    ring() {
      hasRung = true
      stop?.()
    },
  }
}
