/** Where every part of the service reads the time; tests hand in a clock that is turned by hand. */
export type Clock = () => Date

export const systemClock: Clock = () => new Date()
