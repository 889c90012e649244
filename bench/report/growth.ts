import { cellsOf, headOf } from '../growth/cells.ts'
import { GROWTH_FILE, type GrowthResults } from '../growth/results.ts'
import { measuredOf, table } from './markdown.ts'

const BENDS = `**What cannot be flat** ([decision 84](decisions/0084-what-a-delivery-and-a-list-cost-as-tables-grow.md)): lists with a total count what fits, to 10,000. They cost more
until so many fit, which takes half a million users where one of fifty is banned. Each trigram of a part of a name lists a share of all users.`

/** The section of the page about growth: a table for each thing that grows. */
export const growthOf = ({ curves, ...run }: GrowthResults): readonly string[] => [
  '## Growth',
  [
    `${measuredOf(run)}. Processor µs a request, service + database. Each size has its turn on the same server, which writes nothing to the disk.`,
    `Raw figures: [${GROWTH_FILE}](../${GROWTH_FILE}).`,
  ].join(' '),
  BENDS,
  ...[...Map.groupBy(curves, ({ of }) => of)].flatMap(([of, some]) => [
    `### By ${of}`,
    table(
      headOf(some),
      some.map((curve) => cellsOf(curve, some)),
    ),
  ]),
]
