import { cellsOf, headOf } from '../growth/cells.ts'
import { GROWTH_FILE, type GrowthResults } from '../growth/results.ts'
import { measuredOf, table } from './markdown.ts'

/** The section of the page about growth: a table for each thing that grows. */
export const growthOf = ({ curves, ...run }: GrowthResults): readonly string[] => [
  '## Growth',
  [
    `${measuredOf(run)}. Processor µs a request, service + database. Each size has its turn on the same server, which writes nothing to the disk.`,
    `Raw figures: [${GROWTH_FILE}](../${GROWTH_FILE}).`,
  ].join(' '),
  ...[...Map.groupBy(curves, ({ of }) => of)].flatMap(([of, some]) => [
    `### By ${of}`,
    table(
      headOf(some),
      some.map((curve) => cellsOf(curve, some)),
    ),
  ]),
]
