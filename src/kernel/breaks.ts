import { setImmediate } from 'node:timers/promises'

/** How long work may go on before others have their turn, milliseconds. */
const TURN = 10

export type Breaks = {
  readonly isDue: () => boolean
  take(): Promise<void>
}

/** Long work asks now and then whether it is time to let others run. */
export function breaks(): Breaks {
  let began = performance.now()
  return {
    isDue: () => performance.now() - began > TURN,
    async take() {
      await setImmediate()
      began = performance.now()
    },
  }
}
