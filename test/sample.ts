/** Whether matrices are played whole, as in `npm run slow`. */
const isWhole = process.env.RACES === 'all'

/**
 * One of `every` members of a list, from the one at `turn` on. With RACES=all, the whole list. `turn` is the number of a row, so that
 * neighbouring rows meet different members.
 */
export const sampled = <T>(list: readonly T[], every: number, turn = 0): readonly T[] =>
  isWhole ? list : list.filter((_, index) => (index + turn) % every === 0)
