import { fail } from '#gateway/errors.ts'
import type { GroupingMemory } from '#gateway/grouping/grouping.ts'

/** Characters of all labels. */
const LABELS = 16_777_216
/** Rows that differ, with aggregation_dedup: about 80 bytes each. */
const DIGESTS = 1_000_000

/** The memory of a run's groups does not depend on the number of rows, so it has limits of its own. */
export function createGroupingMemory(maxGroups: number): GroupingMemory {
  let [groups, characters, digests] = [0, 0, 0]
  return {
    takeLabel(label) {
      groups++
      characters += label?.length ?? 0
      if (groups > maxGroups) throw tooMany(`The rows have more than ${maxGroups} groups`, maxGroups)
      if (characters > LABELS)
        throw tooMany(`The labels of the groups have more than ${LABELS} characters`, LABELS)
    },
    takeDigest() {
      digests++
      if (digests > DIGESTS)
        throw tooMany(`aggregation_dedup can compare at most ${DIGESTS} different rows`, DIGESTS)
    },
  }
}

const tooMany = (message: string, maximum: number) =>
  fail('too_many_groups', {
    message,
    hint: 'Group by another column, use time_granularity, or limit the rows of the source (gateway.pipelines.max_groups).',
    details: { maximum },
  })
